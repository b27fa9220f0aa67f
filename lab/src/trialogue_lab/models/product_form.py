"""Masked model whose logits are sums of products over k tokens (equations 1 and 4 of the source).

For k = 2, it is one layer of attention whose weights depend on positions only (`FactoredAttention`). Source:
'A distributional simplicity bias in the learning dynamics of transformers'.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.networks.one_hot import ENTRIES_AT_ONCE, OneHotNetwork, one_hot, sample_weights
from trialogue.models.networks.registry import register_network
from trialogue.validation import Count, InstanceOf, Natural, Positive, validated

_NAME = "product-form"
_ENTRIES = 2**24


@validated
@dataclass(frozen=True, kw_only=True)
class ProductFormConfig:
    """Shape of a `ProductForm`.

    Args:
        vocab_size: Number of tokens V.
        sites: Number of sites N.
        order: Number k of tokens that interact.
        initial_scale: Standard deviation of the initial logits.

    Raises:
        InputError: If a field is out of range.
    """

    vocab_size: Annotated[int, Ge(2)]
    sites: Count
    order: Annotated[int, Ge(2)] = 2
    initial_scale: Positive = 1.0

    def __post_init__(self) -> None:
        if max(self.vocab_size, self.sites) ** self.order > _ENTRIES:
            hint = f"its tensors have more than {_ENTRIES} entries: use a smaller one"
            raise InputError("order", self.order, hint)


@register_network(_NAME, ProductFormConfig)
class ProductForm(OneHotNetwork):
    """Masked model whose logits are sums of products over k tokens ("product form").

    The logit of token a at position i is k times the sum over k - 1 other positions j, l, ... of J[i, j, l,
    ...] U[a, x_j, x_l, ...], where x_j is the token at position j. The positions may coincide.

    Args:
        config: Shape of the network.
        seed: Seed of the initial tensors.

    Attributes:
        couplings: Tensor J (N, ..., N) with k axes, one per position.
        similarities: Tensor U (V, ..., V) with k axes, one per token.
    """

    @validated
    def __init__(self, config: InstanceOf[ProductFormConfig], seed: Natural = 0) -> None:
        super().__init__(config.vocab_size, config.sites)
        self.config = config
        self.batch_size = max(1, ENTRIES_AT_ONCE // max(config.sites, config.vocab_size) ** config.order)
        sites, tokens = (config.sites,) * config.order, (config.vocab_size,) * config.order
        scale = config.initial_scale / config.order / math.sqrt(config.sites ** (config.order - 1))
        self.couplings = nn.Parameter(sample_weights(sites, seed, _NAME, "couplings") * scale)
        self.similarities = nn.Parameter(sample_weights(tokens, seed, _NAME, "similarities"))

    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Compute logits (n, vocab_size) at one position per row. See `OneHotNetwork.logits`."""
        couplings, similarities = self.couplings.to(dtype), self.similarities.to(dtype)
        states = one_hot(inputs, self.vocab_size, couplings.dtype)
        terms = couplings[sites].flatten(1)
        for _ in range(self.config.order - 1):
            # The last axis of sites is replaced by an axis of tokens, which is moved to the front.
            terms = (terms.view(len(inputs), terms.shape[1] // self.sites, self.sites) @ states).mT.flatten(1)
        return self.config.order * (terms @ similarities.flatten(1).T)
