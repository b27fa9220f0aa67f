"""Probes, small networks that predict from a hidden state whether a prefix is correct."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Annotated

import torch
from annotated_types import Ge, MinLen
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, as_context
from trialogue.oracles.prefix_features import prefix_features
from trialogue.randomness import generator
from trialogue.validation import Count, Finite, Natural, Several, validated

Layers = Annotated[Several[Annotated[int, Ge(-1)]], MinLen(1)]
"""Layers as numbers of blocks, or -1 for the input of the output head."""

_ROWS_AT_ONCE = 1024


class Probe(nn.Module):
    """Small classifier that predicts from a hidden state of a language model whether a prefix is correct.

    Args:
        width: Width of the hidden states.
        depth: Number of linear layers. 1 is a linear probe, larger values are ReLU MLPs.
        hidden: Units per hidden layer.
        seed: Seed of the initial weights.
    """

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
        """Choose the normalisation of the inputs such that `states` (n, width) have mean 0 and standard deviation 1."""
        self.mean = states.mean(0)
        self.scale = states.std(0).clamp_min(1e-6)

    def forward(self, states: Tensor) -> Tensor:
        """Compute logits (n, 2) of hidden states (n, width).

        Raises:
            InputError: If the hidden states have another width.
        """
        if states.shape[-1] != self.width:
            hint = f"hidden states here have width {states.shape[-1]}; use the model it was trained on"
            raise InputError("probe width", self.width, hint)
        logits: Tensor = self.layers((states - self.mean) / self.scale)
        return logits

    def probability(self, states: Tensor) -> Tensor:
        """Compute P(correct), (n,), of hidden states (n, width)."""
        return self(states).softmax(-1)[:, 1]

    @validated
    def rescaled(self, slope: Finite, offset: Finite) -> "Probe":
        """Return a copy with rescaled log-odds: `slope` times the original log-odds plus `offset`."""
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
    """Compute the hidden states at the last position of prefixes.

    Args:
        oracle: Model that provides hidden states.
        tokens: Token ids, (n, capacity) int64.
        lengths: Length of each prefix, (n,) int64.
        layers: Layers to read, as numbers of blocks or -1 for the input of the output head.

    Returns:
        Hidden states, (n, len(layers), width) float32 on the CPU.
    """
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
    # Tensors created in inference mode cannot be used for training.
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
    """Compute the hidden states of several prefixes per sequence.

    Each position is evaluated once for all prefixes and layers. Sequences that start with the same tokens, for example
    a prompt, are batched together. They share the computation if the common prefix is at least half of each sequence.

    Args:
        oracle: Model that provides hidden states.
        sequences: Token ids of each sequence.
        lengths: Lengths of the prefixes of each sequence, in increasing order.
        layers: Layers to read, as numbers of blocks or -1 for the input of the output head.
        batch_size: Maximum number of sequences per batch.
        evaluated: Function called with the number of completed positions after each model call, for example to update a
            progress bar. A shared position counts once per sequence.

    Returns:
        Hidden states in the order of `lengths`, (n, len(layers), width) float32 on the CPU.

    Raises:
        InputError: If lengths do not increase or exceed their sequence, if there is no prefix, or if the model has no
            state for an empty prefix.
    """
    if len(sequences) != len(lengths):
        raise InputError(
            "lengths", len(lengths), f"use one list of lengths for each of {len(sequences)} sequences"
        )
    for sequence, cuts in zip(sequences, lengths, strict=True):
        if any(shorter >= longer for shorter, longer in pairwise([-1, *cuts, len(sequence) + 1])):
            hint = f"use increasing lengths from 0 to {len(sequence)}, the length of the sequence"
            raise InputError("lengths", list(cuts), hint)
    recorded = tuple(layer for layer in layers if layer != -1)
    cut = {index: sequences[index][: cuts[-1]] for index, cuts in enumerate(lengths) if len(cuts)}
    if not cut:
        raise InputError("lengths", 0, "use at least one prefix")
    if not any(map(len, lengths)):
        raise InputError("lengths", 0, "use at least one prefix")
    first = [0, *accumulate(map(len, lengths))]
    states: Tensor | None = None
    recorded = tuple(layer for layer in layers if layer != -1)
    with torch.inference_mode():
        for part in prefix_features(oracle, sequences, lengths, recorded, batch_size):
            part_states = torch.stack([part.context.hidden(part.features, layer) for layer in layers], 1)
            if states is None:
                # Tensors created in inference mode cannot be used for training.
                with torch.inference_mode(False):
                    states = torch.empty(first[-1], *part_states.shape[1:])
            places = [first[sequence] + turn for sequence, turn in part.prefixes]
            states[places] = part_states.float().cpu()
            if evaluated is not None:
                evaluated(part.positions)
    assert states is not None
    return states
