"""Factored attention: layers whose attention does not look at the input, so that their depth bounds interactions.

A layer computes y_i = sum over j of A_ij V x_j of one-hot tokens x, a masked site being zero, and layers before the
last add the square of what they compute: x + (A x V^T)^2. Logits of n layers are then polynomials of degree 2^(n-1) in
the other tokens, conditionals of interactions of at most 2^(n-1) + 1 bodies: section 2 and equations 1 to 3 of the
document on the distributional simplicity bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Ge
from torch import Tensor, nn

from trialogue.arrays import whole_tensor
from trialogue.errors import InputError
from trialogue.models.networks.factored_layers import (
    FactoredLayer,
    attended_above,
    masked_logits,
    masked_token_logits,
)
from trialogue.models.networks.one_hot import OneHotNetwork, drawn_weights, one_hot
from trialogue.models.networks.registry import register_network
from trialogue.validation import Count, InstanceOf, Natural, Positive, validated

_NAME = "factored-attention"


@validated
@dataclass(frozen=True, kw_only=True)
class FactoredAttentionConfig:
    """Shape of a `FactoredAttention`. Raises `InputError` where a field is out of range.

    Sequences have `sites` tokens of `vocab_size` values. `rank` is that of the value matrices, None for full ones.
    `layer_norm` normalises what each layer but the last adds up, over the vocabulary: logits then are no polynomials,
    and all orders appear. `initial_scale` multiplies the initial standard deviations, 1 / sqrt(sites) of attention and
    1 / sqrt(vocab_size) of values; small ones (0.1) are learned from order by order.
    """

    vocab_size: Annotated[int, Ge(2)]
    sites: Count
    layers: Count = 1
    rank: Count | None = None
    layer_norm: bool = False
    initial_scale: Positive = 1.0

    def __post_init__(self) -> None:
        if self.rank is not None and self.rank > self.vocab_size:
            raise InputError("rank", self.rank, f"use at most vocab_size={self.vocab_size}")

    @property
    def max_order(self) -> int:
        """The most bodies of an interaction in a conditional: min(sites, 2^(layers-1) + 1), all with a layer norm."""
        if self.layer_norm and self.layers > 1:
            return self.sites
        return min(self.sites, 2 ** (self.layers - 1) + 1)


@register_network(_NAME, FactoredAttentionConfig)
class FactoredAttention(OneHotNetwork):
    """The network of `config` with initial weights from the stream of `seed`; itself a masked oracle."""

    @validated
    def __init__(self, config: InstanceOf[FactoredAttentionConfig], seed: Natural = 0) -> None:
        super().__init__(config.vocab_size, config.sites)
        self.config = config
        size, rank = config.vocab_size, config.rank
        shapes = [(size, size)] if rank is None else [(size, rank), (rank, size)]
        value_scale = config.initial_scale / math.sqrt(size)
        # The product of two factors has the same deviation as one full matrix.
        factor_scale = value_scale if rank is None else math.sqrt(value_scale / math.sqrt(rank))
        self.attention, self.values = nn.ParameterList(), nn.ParameterList()
        for layer in range(config.layers):
            attention = drawn_weights((config.sites, config.sites), seed, _NAME, layer, "attention")
            self.attention.append(attention * (config.initial_scale / math.sqrt(config.sites)))
            for factor, shape in enumerate(shapes):
                self.values.append(
                    drawn_weights(shape, seed, _NAME, layer, f"values-{factor}") * factor_scale
                )

    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Logits (n, vocab) at `sites` (n,) of `inputs` (n, N), in which mask tokens stand at masked sites."""
        layers = self._layers(dtype)
        first, added = layers[0].attention, layers[0].of_tokens[inputs]
        if len(layers) == 1:
            return (first[sites][:, None] @ added)[:, 0]
        states = one_hot(inputs, self.vocab_size, added.dtype) + (first @ added).square()
        return layers[-1].mixed(attended_above(layers, states, sites, self._norm))

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Logits (rows, N, vocab) of every site i, each masked in a copy of its own.

        Copies of a sequence share the first layer: masking a site subtracts what it adds. Of one or two layers none are
        made, the term being followed to the end. No gradients are carried.
        """
        return self._of_sites(masked_logits, tokens, (self.vocab_size,))

    def token_logits(self, tokens: Tensor) -> Tensor:
        """Those of `site_logits` at the tokens themselves (rows, N), in less time than those of all tokens take."""
        return self._of_sites(masked_token_logits, tokens, ())

    def matrices(self, dtype: torch.dtype | None = None) -> list[tuple[Tensor, Tensor]]:
        """Of every layer its attention (N, N) and its values (V, V), in `dtype` and multiplied out."""
        return [(layer.attention, layer.of_tokens[:-1].T) for layer in self._layers(dtype)]

    def _of_sites(self, answer: Callable[..., Tensor], tokens: Tensor, shape: tuple[int, ...]) -> Tensor:
        """What `answer` gives (rows, N, *shape) of the layers and `tokens` (rows, N), none of them masked."""
        tokens = self._require(whole_tensor("tokens", tokens, "give token ids (rows, N)"))
        if bool((tokens == self.mask).any()):
            raise InputError(
                "tokens", self.mask, "give sequences without masks: every site is masked in its turn"
            )
        answers = torch.empty(*tokens.shape, *shape, dtype=self.dtype, device=tokens.device)
        with torch.no_grad():
            layers = self._layers(self.dtype)
            for part in self._parts(len(tokens)):
                rows = tokens[part].to(layers[0].attention.device)
                answers[part] = answer(layers, rows, self.batch_size, self._norm).to(answers.device)
        return answers

    @property
    def _norm(self) -> Callable[[Tensor], Tensor] | None:
        return _normalized if self.config.layer_norm else None

    def _layers(self, dtype: torch.dtype | None) -> list[FactoredLayer]:
        each = 1 if self.config.rank is None else 2
        attention, values = ([part.to(dtype) for part in parts] for parts in (self.attention, self.values))
        return [
            FactoredLayer(attention[layer], tuple(values[layer * each : (layer + 1) * each]))
            for layer in range(self.config.layers)
        ]


def _normalized(states: Tensor) -> Tensor:
    return F.layer_norm(states, states.shape[-1:])
