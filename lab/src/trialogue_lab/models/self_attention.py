"""One layer of standard attention of the size of a factored layer, for comparison on two-body interactions.

Tokens are one-hot vectors, zero if masked, plus a vector for each site. The logits at a site are V times the
attention output with softmax of queries times keys: equation 1 of the document on the distributional
simplicity bias with input-dependent attention.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn

from trialogue.models.networks.one_hot import OneHotNetwork, drawn_weights, one_hot
from trialogue.models.networks.registry import register_network
from trialogue.validation import Count, InstanceOf, Natural, Positive, validated

_NAME = "self-attention"


@validated
@dataclass(frozen=True, kw_only=True)
class SelfAttentionConfig:
    """Shape of a `SelfAttention`, whose width is `vocab_size`.

    Args:
        vocab_size: Number of tokens.
        sites: Number of sites.
        initial_scale: Standard deviation of the initial weights times sqrt(vocab_size).

    Raises:
        InputError: If a field is out of range.
    """

    vocab_size: Annotated[int, Ge(2)]
    sites: Count
    initial_scale: Positive = 1.0


@register_network(_NAME, SelfAttentionConfig)
class SelfAttention(OneHotNetwork):
    """One attention layer and masked oracle.

    `positions` (N, V) are added to tokens. `queries`, `keys` and `values` are (V, V).

    Args:
        config: Shape of the network.
        seed: Seed of the initial weights.
    """

    @validated
    def __init__(self, config: InstanceOf[SelfAttentionConfig], seed: Natural = 0) -> None:
        super().__init__(config.vocab_size, config.sites)
        self.config = config
        scale, width = config.initial_scale / math.sqrt(config.vocab_size), config.vocab_size
        self.positions = nn.Parameter(drawn_weights((config.sites, width), seed, _NAME, "positions") * scale)
        self.queries, self.keys, self.values = (
            nn.Parameter(drawn_weights((width, width), seed, _NAME, name) * scale)
            for name in ("queries", "keys", "values")
        )

    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Return logits (n, vocab) at `sites` (n,) of `inputs` (n, N) with mask tokens at masked sites."""
        parts = (self.positions, self.queries, self.keys, self.values)
        positions, queries, keys, values = (part.to(dtype) for part in parts)
        states = one_hot(inputs, self.vocab_size, positions.dtype) + positions
        own = states[torch.arange(len(inputs), device=inputs.device), sites]
        scores = (states @ keys.T @ (own @ queries.T)[:, :, None])[:, :, 0] / math.sqrt(self.vocab_size)
        attended: Tensor = (scores.softmax(1)[:, None] @ states)[:, 0]
        return attended @ values.T
