"""A probe: a small network from a hidden state to the probability that the prefix is still correct."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Annotated, Protocol, runtime_checkable

import torch
from annotated_types import Ge, MinLen
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Context, as_context, padded
from trialogue.randomness import generator
from trialogue.validation import Count, Finite, Natural, Several, validated

Layers = Annotated[Several[Annotated[int, Ge(-1)]], MinLen(1)]
"""Numbers of layers, counted in blocks; -1 is what the output head reads."""

_ROWS_AT_ONCE = 1024


class Probe(nn.Module):
    """Two logits (error, correct) of a hidden state (n, width): linear for `depth=1`, else an MLP with ReLU."""

    @validated
    def __init__(self, width: Count, depth: Count = 1, hidden: Count = 256, seed: Natural = 0) -> None:
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
            hint = f"hidden states here have width {states.shape[-1]}; use the model it was trained on"
            raise InputError("probe width", self.width, hint)
        logits: Tensor = self.layers((states - self.mean) / self.scale)
        return logits

    def probability(self, states: Tensor) -> Tensor:
        """P(correct) (n,) of `states` (n, width)."""
        return self(states).softmax(-1)[:, 1]

    @validated
    def rescaled(self, slope: Finite, offset: Finite) -> "Probe":
        """A copy whose log-odds of correct are `slope` times this probe's, plus `offset`."""
        copy = Probe(self.width, self.depth, self.hidden)
        copy.load_state_dict(self.state_dict())
        with torch.no_grad():
            last = copy.layers[-1]
            assert isinstance(last, nn.Linear)
            last.weight.mul_(slope)
            last.bias.mul_(slope).add_(torch.tensor([0.0, offset]))
        return copy.eval().requires_grad_(False)


@validated
def hidden_states(oracle: Autoregressive, tokens: Tensor, lengths: Tensor, layers: Layers = (-1,)) -> Tensor:
    """Last-position hidden states (n, len(layers), width) of prefixes `tokens` (n, capacity), `lengths` (n,)."""
    states: list[Tensor] = []
    rows = max(1, min(_ROWS_AT_ONCE, len(tokens)))
    with torch.inference_mode():
        context = as_context(
            oracle.open(rows, tokens.shape[1], tuple(layer for layer in layers if layer != -1))
        )
        for first in range(0, max(1, len(tokens)), rows):
            part, stop = tokens[first : first + rows], lengths[first : first + rows]
            features = context.features(part, torch.zeros_like(stop), stop, torch.arange(len(part)))
            states.append(torch.stack([context.hidden(features, layer) for layer in layers], 1).float().cpu())
    # Outside of inference mode, so that a probe may be trained on them.
    return torch.cat(states)


@validated
def hidden_states_of_prefixes(
    oracle: Autoregressive,
    sequences: Sequence[Sequence[int]],
    lengths: Sequence[Sequence[int]],
    layers: Layers = (-1,),
    *,
    batch_size: Count = 16,
    evaluated: Callable[[int], object] | None = None,
) -> Tensor:
    """Hidden states (n, len(layers), width) of prefixes of `sequences`, float32 on the CPU.

    `lengths` names the prefixes of each sequence, shortest first; the n states come in that order, sequence by
    sequence. Every position is evaluated once for all prefixes and all layers, up to the longest prefix that is
    asked for, in batches of `batch_size` sequences; so is a beginning that the sequences of a batch share, such as a
    prompt, where it is at least half of each. `evaluated` is told how many positions each call settled, a shared one
    once for each sequence. Raises `InputError` where
    lengths do not increase or exceed their sequence.
    """
    if len(sequences) != len(lengths):
        raise InputError("lengths", len(lengths), f"name prefixes for each of {len(sequences)} sequences")
    for sequence, cuts in zip(sequences, lengths, strict=True):
        if any(shorter >= longer for shorter, longer in pairwise([-1, *cuts, len(sequence) + 1])):
            hint = f"use increasing lengths from 0 to {len(sequence)}, the length of the sequence"
            raise InputError("lengths", list(cuts), hint)
    recorded = tuple(layer for layer in layers if layer != -1)
    cut = {index: sequences[index][: cuts[-1]] for index, cuts in enumerate(lengths) if len(cuts)}
    if not cut:
        raise InputError("lengths", 0, "name at least one prefix")
    first = [0, *accumulate(len(cuts) for cuts in lengths)]
    states: Tensor | None = None
    with torch.inference_mode():
        for batch, shared in _batches(cut, {index: lengths[index][0] - 1 for index in cut}, batch_size):
            tokens, _ = padded([cut[index] for index in batch])
            asked = [lengths[index] for index in batch]
            context = as_context(oracle.open(len(batch), tokens.shape[1], recorded))
            if min(row_lengths[0] for row_lengths in asked) < context.first:
                raise InputError("lengths", 0, "this model has no state before its first token")
            for part, positions, part_states in _read(context, tokens, asked, layers, shared):
                if states is None:
                    with torch.inference_mode(False):  # a probe may be trained on them
                        states = torch.empty(first[-1], *part_states.shape[1:])
                states[[first[batch[row]] + turn for row, turn in part]] = part_states.float().cpu()
                if evaluated is not None:
                    evaluated(positions)
    assert states is not None
    return states


def _batches(
    sequences: Mapping[int, Sequence[int]], most: Mapping[int, int], size: int
) -> Iterator[tuple[list[int], int]]:
    """Keys of `sequences` to evaluate together, `size` at most, and how many first tokens they share.

    Those that share half of the longest of them or more; then the others, of similar length together, which are told
    to share nothing. Of a sequence `most` says how many tokens may be shared.
    """
    order = sorted(sequences, key=lambda key: tuple(sequences[key]))
    alone: list[int] = []
    begin = 0
    while begin < len(order):
        batch, shared = [order[begin]], most[order[begin]]
        longest = len(sequences[order[begin]])
        for key in order[begin + 1 : begin + size]:
            common = _common(sequences[batch[0]], sequences[key], min(shared, most[key]))
            longest = max(longest, len(sequences[key]))
            # With one more, that many are spared at each of those before it.
            if 2 * common < longest or common * len(batch) < shared * (len(batch) - 1):
                break
            batch.append(key)
            shared = common
        begin += len(batch)
        if len(batch) > 1:
            yield batch, shared
        else:
            alone += batch
    alone.sort(key=lambda key: len(sequences[key]), reverse=True)
    for place in range(0, len(alone), size):
        yield alone[place : place + size], 0


def _common(one: Sequence[int], other: Sequence[int], most: int) -> int:
    """How many first tokens are the same, up to `most`."""
    pairs = zip(islice(one, max(0, most)), other, strict=False)
    return next(
        (place for place, (mine, theirs) in enumerate(pairs) if mine != theirs), min(most, len(other))
    )


@runtime_checkable
class _WholePass(Protocol):
    """A context that reads the hidden states of all prefixes off one pass."""

    def prefix_states(
        self, tokens: Tensor, start: int, lengths: Sequence[Sequence[int]], layers: Sequence[int]
    ) -> Tensor:
        """Hidden states (n, len(layers), width) of the prefixes, row by row; see `PretrainedContext`."""
        ...


def _read(
    context: Context, tokens: Tensor, lengths: Sequence[Sequence[int]], layers: Sequence[int], shared: int
) -> Iterator[tuple[list[tuple[int, int]], int, Tensor]]:
    """(row, which of its prefixes), positions settled, hidden states (prefixes, layers, width).

    Of the first `shared` tokens, which are the same in all rows, what is evaluated in one row is copied to the others.
    """
    start = 0
    if shared and not context.recomputes:
        start = shared + 1
        one, others = torch.zeros(1, dtype=torch.int64), torch.arange(1, len(tokens))
        context.features(tokens[:1], one, one + shared, one)
        context.copy(torch.zeros_like(others), others, 0, shared)
    if isinstance(context, _WholePass):
        part = [(row, turn) for row, cuts in enumerate(lengths) for turn in range(len(cuts))]
        yield (
            part,
            sum(cuts[-1] + 1 for cuts in lengths),
            context.prefix_states(tokens, start, lengths, layers),
        )
        return
    done = torch.full((len(tokens),), start)
    for turn in range(max(map(len, lengths))):
        part = [(row, turn) for row, cuts in enumerate(lengths) if turn < len(cuts)]
        rows = torch.tensor([row for row, _ in part])
        stop = torch.tensor([lengths[row][turn] for row, _ in part])
        features = context.features(tokens[rows], done[rows], stop, rows)
        settled = int((stop + 1 - (done[rows] if turn else 0)).sum())
        yield part, settled, torch.stack([context.hidden(features, layer) for layer in layers], 1)
        done[rows] = stop + 1
