"""A probe: a small network from a hidden state to the probability that the prefix is still correct."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.randomness import generator

_ROWS_AT_ONCE = 1024


class Probe(nn.Module):
    """Two logits (error, correct) of a hidden state (n, width): linear for `depth=1`, else an MLP with ReLU."""

    def __init__(self, width: int, depth: int = 1, hidden: int = 256, seed: int = 0) -> None:
        if depth < 1:
            raise InputError("depth", depth, "use 1 (linear) or more layers")
        super().__init__()
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
        """Logits (n, 2) of `states` (n, width)."""
        logits: Tensor = self.layers((states - self.mean) / self.scale)
        return logits

    def probability(self, states: Tensor) -> Tensor:
        """P(correct) (n,) of `states` (n, width)."""
        return self(states).softmax(-1)[:, 1]


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
