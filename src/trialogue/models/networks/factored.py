"""Factored attention networks, whose depth limits the order of interactions between tokens.

The attention weights depend on positions only, not on the input. The last layer computes y_i = sum over j of
A_ij V x_j for one-hot tokens x, with zeros at masked sites. The layers before it compute x + (A x V^T)^2.
With n layers, at most 2^(n-1) + 1 tokens interact. See section 2 and equations 1 to 3 of the document on the
distributional simplicity bias.
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

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.models.networks.factored_layers import (
    FactoredLayer,
    attend_last_layer,
    masked_logits,
    masked_token_logits,
)
from trialogue.models.networks.one_hot import OneHotNetwork, one_hot, sample_weights
from trialogue.models.networks.registry import register_network
from trialogue.validation import Count, InstanceOf, Natural, Positive, validated

_NAME = "factored-attention"


@validated
@dataclass(frozen=True, kw_only=True)
class FactoredAttentionConfig:
    """Architecture of a `FactoredAttention`.

    Args:
        vocab_size: Number of tokens.
        sites: Number of tokens per sequence.
        layers: Number of layers.
        rank: Rank of the value matrices. None for full matrices.
        layer_norm: Whether to apply a layer norm over the vocabulary after every layer but the last. Logits are then
            not polynomials, and interactions of all orders appear.
        initial_scale: Factor of the initial standard deviations, which are 1 / sqrt(sites) for attention and
            1 / sqrt(vocab_size) for values. With small values (0.1), interactions are learned order by order.

    Raises:
        InputError: If a field is out of range.
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
        """Maximum order of interactions, min(sites, 2^(layers-1) + 1), or `sites` with a layer norm."""
        if self.layer_norm and self.layers > 1:
            return self.sites
        return min(self.sites, 2 ** (self.layers - 1) + 1)


@register_network(_NAME, FactoredAttentionConfig)
class FactoredAttention(OneHotNetwork):
    """Masked language model with attention weights that depend on positions only.

    Its depth limits the order of interactions: with n layers, at most 2^(n-1) + 1 tokens interact.

    Args:
        config: Architecture.
        seed: Seed of the initial weights.
    """

    @validated
    def __init__(self, config: InstanceOf[FactoredAttentionConfig], seed: Natural = 0) -> None:
        super().__init__(config.vocab_size, config.sites)
        self.config = config
        size, rank = config.vocab_size, config.rank
        shapes = [(size, size)] if rank is None else [(size, rank), (rank, size)]
        value_scale = config.initial_scale / math.sqrt(size)
        # With this scale, the product of two factors has the same standard deviation as a full matrix.
        factor_scale = value_scale if rank is None else math.sqrt(value_scale / math.sqrt(rank))
        self.attention, self.values = nn.ParameterList(), nn.ParameterList()
        for layer in range(config.layers):
            attention = sample_weights((config.sites, config.sites), seed, _NAME, layer, "attention")
            self.attention.append(attention * (config.initial_scale / math.sqrt(config.sites)))
            for factor, shape in enumerate(shapes):
                self.values.append(
                    sample_weights(shape, seed, _NAME, layer, f"values-{factor}") * factor_scale
                )

    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Compute logits (n, vocab_size) at one site per row. See `OneHotNetwork.logits`."""
        layers = self._layers(dtype)
        first, added = layers[0].attention, layers[0].token_values[inputs]
        if len(layers) == 1:
            return (first[sites][:, None] @ added)[:, 0]
        states = one_hot(inputs, self.vocab_size, added.dtype) + (first @ added).square()
        return layers[-1].apply_values(attend_last_layer(layers, states, sites, self._norm))

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Compute logits of every site given all other sites, without gradients.

        Args:
            tokens: Unmasked tokens, (rows, N) int64.

        Returns:
            Logits, (rows, N, vocab_size).

        Raises:
            InputError: If the shape is wrong, or if a token is masked or outside the vocabulary.
        """
        return self._evaluate_sites(masked_logits, tokens, (self.vocab_size,))

    def token_logits(self, tokens: Tensor) -> Tensor:
        """Compute the logit (rows, N) of the given token at each site, with this site masked.

        This is faster than `site_logits`, which computes the logits of all tokens.
        """
        return self._evaluate_sites(masked_token_logits, tokens, ())

    def matrices(self, dtype: torch.dtype | None = None) -> list[tuple[Tensor, Tensor]]:
        """Return the attention matrix (N, N) and the full value matrix (V, V) of each layer.

        Args:
            dtype: Dtype of the matrices. The dtype of the weights by default.
        """
        return [(layer.attention, layer.token_values[:-1].T) for layer in self._layers(dtype)]

    def _evaluate_sites(
        self, evaluate: Callable[..., Tensor], tokens: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Apply `evaluate` to batches of unmasked `tokens` and return results (rows, N, *shape)."""
        tokens = self._require(integer_tensor("tokens", tokens, "give token ids (rows, N)"))
        if bool((tokens == self.mask).any()):
            raise InputError("tokens", self.mask, "use sequences without mask tokens")
        results = torch.empty(*tokens.shape, *shape, dtype=self.dtype, device=tokens.device)
        with torch.no_grad():
            layers = self._layers(self.dtype)
            for part in self._batch_slices(len(tokens)):
                rows = tokens[part].to(layers[0].attention.device)
                results[part] = evaluate(layers, rows, self.batch_size, self._norm).to(results.device)
        return results

    @property
    def _norm(self) -> Callable[[Tensor], Tensor] | None:
        return _layer_norm if self.config.layer_norm else None

    def _layers(self, dtype: torch.dtype | None) -> list[FactoredLayer]:
        each = 1 if self.config.rank is None else 2
        attention, values = ([part.to(dtype) for part in parts] for parts in (self.attention, self.values))
        return [
            FactoredLayer(attention[layer], tuple(values[layer * each : (layer + 1) * each]))
            for layer in range(self.config.layers)
        ]


def _layer_norm(states: Tensor) -> Tensor:
    return F.layer_norm(states, states.shape[-1:])
