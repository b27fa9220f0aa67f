"""Masked model whose logits are sums of products over k tokens.

The logit of token a at site (position) i is k times a sum over k - 1 sites j, ... and tokens b, ... Each term is the
product J_(i j ...) U_(a b ...) s_(j b) ... Here J and U are learned tensors of k axes, and s_(j b) is 1 if site j has
token b, and 0 otherwise. These are equations 1 and 4 of the document on the distributional simplicity bias. For k = 2,
the model is one layer of `FactoredAttention`. Sites may coincide, as in equation 4, so that the sum also has
interactions of fewer tokens. For distributions of distinct sites (`trialogue.data.ManyBody`), these entries are zero.
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

    Each term has a weight that is an entry of `couplings`, selected by k positions, times an entry of `similarities`,
    selected by k tokens.

    Args:
        config: Shape of the network.
        seed: Seed of the initial tensors.

    Attributes:
        couplings: Tensor J (N, ..., N) with k axes.
        similarities: Tensor U (V, ..., V) with k axes.
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
