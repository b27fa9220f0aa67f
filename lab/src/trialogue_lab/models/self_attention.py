"""One layer of softmax attention with as many parameters as a factored attention layer, for comparison.

In a factored layer, attention depends on positions only. Here, it also depends on tokens.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn

from trialogue.models.networks.one_hot import OneHotNetwork, one_hot, sample_weights
from trialogue.models.networks.registry import register_network
from trialogue.validation import Count, InstanceOf, Natural, Positive, validated

_NAME = "self-attention"


@validated
@dataclass(frozen=True, kw_only=True)
class SelfAttentionConfig:
    """Shape of a `SelfAttention` layer, whose width is the number of tokens.

    Args:
        vocab_size: Number of tokens V.
        sites: Number of sites N.
        initial_scale: Standard deviation of the initial weights times sqrt(vocab_size).

    Raises:
        InputError: If a field is out of range.
    """

    vocab_size: Annotated[int, Ge(2)]
    sites: Count
    initial_scale: Positive = 1.0


@register_network(_NAME, SelfAttentionConfig)
class SelfAttention(OneHotNetwork):
    """Masked model with one softmax attention layer on one-hot tokens.

    Args:
        config: Shape of the network.
        seed: Seed of the initial weights.

    Attributes:
        positions: Vectors (N, V) that are added to the tokens.
        queries: Query matrix (V, V).
        keys: Key matrix (V, V).
        values: Value matrix (V, V).
    """

    @validated
    def __init__(self, config: InstanceOf[SelfAttentionConfig], seed: Natural = 0) -> None:
        super().__init__(config.vocab_size, config.sites)
        self.config = config
        scale, width = config.initial_scale / math.sqrt(config.vocab_size), config.vocab_size
        self.positions = nn.Parameter(sample_weights((config.sites, width), seed, _NAME, "positions") * scale)
        self.queries, self.keys, self.values = (
            nn.Parameter(sample_weights((width, width), seed, _NAME, name) * scale)
            for name in ("queries", "keys", "values")
        )

    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Compute logits (n, vocab_size) at one position per row. See `OneHotNetwork.logits`."""
        parts = (self.positions, self.queries, self.keys, self.values)
        positions, queries, keys, values = (part.to(dtype) for part in parts)
        states = one_hot(inputs, self.vocab_size, positions.dtype) + positions
        own = states[torch.arange(len(inputs), device=inputs.device), sites]
        scores = (states @ keys.T @ (own @ queries.T)[:, :, None])[:, :, 0] / math.sqrt(self.vocab_size)
        attended: Tensor = (scores.softmax(1)[:, None] @ states)[:, 0]
        return attended @ values.T
