"""A probe: a small network from a hidden state to the probability that the prefix is still correct."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Context, padded
from trialogue.randomness import generator

_ROWS_AT_ONCE = 1024


class Probe(nn.Module):
    """Two logits (error, correct) of a hidden state (n, width): linear for `depth=1`, else an MLP with ReLU."""

    def __init__(self, width: int, depth: int = 1, hidden: int = 256, seed: int = 0) -> None:
        if depth < 1:
            raise InputError("depth", depth, "use 1 (linear) or more layers")
        super().__init__()
        self.width, self.depth, self.hidden = width, depth, hidden
        widths = [width, *[hidden] * (depth - 1), 2]
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        draw = generator(seed, "probe")
        with torch.no_grad():
            for parameter in self.parameters():
                bound = parameter.shape[-1] ** -0.5
                parameter.uniform_(-bound, bound, generator=draw)

    def standardise(self, states: Tensor) -> None:
        """Take mean and scale of the input from `states` (n, width)."""
        self.mean = states.mean(0)
        self.scale = states.std(0).clamp_min(1e-6)

    def forward(self, states: Tensor) -> Tensor:
        """Logits (n, 2) of `states` (n, width); raises `InputError` for hidden states of another width."""
        if states.shape[-1] != self.width:
            mend = f"hidden states here have width {states.shape[-1]}; use the model it was trained on"
            raise InputError("probe width", self.width, mend)
        logits: Tensor = self.layers((states - self.mean) / self.scale)
        return logits

    def probability(self, states: Tensor) -> Tensor:
        """P(correct) (n,) of `states` (n, width)."""
        return self(states).softmax(-1)[:, 1]

    def rescaled(self, slope: float, offset: float) -> "Probe":
        """A copy whose log-odds of correct are `slope` times this probe's, plus `offset`."""
        copy = Probe(self.width, self.depth, self.hidden)
        copy.load_state_dict(self.state_dict())
        with torch.no_grad():
            last = copy.layers[-1]
            assert isinstance(last, nn.Linear)
            last.weight.mul_(slope)
            last.bias.mul_(slope).add_(torch.tensor([0.0, offset]))
        return copy.eval().requires_grad_(False)


def hidden_states(
    oracle: Autoregressive, tokens: Tensor, lengths: Tensor, layers: Sequence[int] = (-1,)
) -> Tensor:
    """Last-position hidden states (n, len(layers), width) of prefixes `tokens` (n, capacity), `lengths` (n,)."""
    states: list[Tensor] = []
    rows = max(1, min(_ROWS_AT_ONCE, len(tokens)))
    with torch.inference_mode():
        context = oracle.open(rows, tokens.shape[1], tuple(layer for layer in layers if layer != -1))
        for first in range(0, max(1, len(tokens)), rows):
            part, stop = tokens[first : first + rows], lengths[first : first + rows]
            features = context.features(part, torch.zeros_like(stop), stop, torch.arange(len(part)))
            states.append(torch.stack([context.hidden(features, layer) for layer in layers], 1).float().cpu())
    # Outside of inference mode, so that a probe may be trained on them.
    return torch.cat(states)


def hidden_states_of_prefixes(
    oracle: Autoregressive,
    sequences: Sequence[Sequence[int]],
    lengths: Sequence[Sequence[int]],
    layers: Sequence[int] = (-1,),
    *,
    batch_size: int = 16,
    evaluated: Callable[[int], object] | None = None,
) -> Tensor:
    """Hidden states (n, len(layers), width) of prefixes of `sequences`, float32 on the CPU.

    `lengths` names the prefixes of each sequence, shortest first; the n states come in that order, sequence by
    sequence. Every position is evaluated once for all prefixes and all layers, up to the longest prefix that is
    asked for, in batches of `batch_size` sequences of similar length, the longest first. `evaluated` is told how
    many positions each call had. Raises `InputError` where lengths do not increase or exceed their
    sequence.
    """
    if len(sequences) != len(lengths):
        raise InputError("lengths", len(lengths), f"name prefixes for each of {len(sequences)} sequences")
    for sequence, own in zip(sequences, lengths, strict=True):
        if any(shorter >= longer for shorter, longer in pairwise([-1, *own, len(sequence) + 1])):
            mend = f"use increasing lengths from 0 to {len(sequence)}, the length of the sequence"
            raise InputError("lengths", list(own), mend)
    recorded = tuple(layer for layer in layers if layer != -1)
    asked = [index for index, own in enumerate(lengths) if len(own)]
    if not asked:
        raise InputError("lengths", 0, "name at least one prefix")
    asked.sort(key=lambda index: lengths[index][-1], reverse=True)
    first = [0, *accumulate(len(own) for own in lengths)]
    read = _read_whole if isinstance(oracle, _WholePass) else _read_stepwise
    states: Tensor | None = None
    with torch.inference_mode():
        for begin in range(0, len(asked), batch_size):
            batch = asked[begin : begin + batch_size]
            tokens, _ = padded([sequences[index][: lengths[index][-1]] for index in batch])
            context = oracle.open(len(batch), tokens.shape[1], recorded)
            for part, positions, found in read(
                oracle, context, tokens, [lengths[index] for index in batch], layers
            ):
                if states is None:
                    with torch.inference_mode(False):  # a probe may be trained on them
                        states = torch.empty(first[-1], *found.shape[1:])
                states[[first[batch[row]] + turn for row, turn in part]] = found.float().cpu()
                if evaluated is not None:
                    evaluated(positions)
    assert states is not None
    return states


@runtime_checkable
class _WholePass(Protocol):
    """An oracle around a network whose one pass has the hidden states at all positions."""

    @property
    def body(self) -> nn.Module:
        """The network without its head."""
        ...


_Read = Iterator[tuple[list[tuple[int, int]], int, Tensor]]
"""(row, which of its prefixes), positions evaluated, hidden states (prefixes, layers, width)."""


def _read_whole(
    oracle: Any, context: Context, tokens: Tensor, lengths: list[Sequence[int]], layers: Sequence[int]
) -> _Read:
    """All prefixes in one pass. The context, which is not used, has checked length and layers."""
    del context
    answer = oracle.body(input_ids=tokens.to(oracle.device), output_hidden_states=True, use_cache=False)
    part = [(row, turn) for row, own in enumerate(lengths) for turn in range(len(own))]
    rows = [row for row, _ in part]
    # A prefix of i tokens ends at index i - 1; padding lies to the right, where a causal network does not look.
    last = [lengths[row][turn] - 1 for row, turn in part]
    if min(last) < 0:
        raise InputError("lengths", 0, "a pretrained model has no state before its first token")
    streams = (answer.last_hidden_state if layer == -1 else answer.hidden_states[layer] for layer in layers)
    yield (
        part,
        sum(own[-1] + 1 for own in lengths),
        torch.stack([stream[rows, last] for stream in streams], 1),
    )


def _read_stepwise(
    oracle: Autoregressive,
    context: Context,
    tokens: Tensor,
    lengths: list[Sequence[int]],
    layers: Sequence[int],
) -> _Read:
    """The first prefix of every row, then what the second has more, and so on."""
    del oracle
    start = torch.zeros(len(tokens), dtype=torch.int64)
    for turn in range(max(map(len, lengths))):
        part = [row for row, own in enumerate(lengths) if turn < len(own)]
        stop = torch.tensor([lengths[row][turn] for row in part])
        rows = torch.tensor(part)
        features = context.features(tokens[rows], start[rows], stop, rows)
        states = torch.stack([context.hidden(features, layer) for layer in layers], 1)
        yield [(row, turn) for row in part], int((stop - start[rows]).sum()) + len(part), states
        start[rows] = stop + 1
