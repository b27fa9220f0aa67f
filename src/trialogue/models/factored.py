"""Factored attention: layers whose attention does not look at the input, so that their depth bounds interactions.

A layer computes y_i = sum over j of A_ij V x_j of one-hot tokens x, a masked site being zero, and layers before the
last add the square of what they compute: x + (A x V^T)^2. Logits of n layers are then polynomials of degree 2^(n-1) in
the other tokens, conditionals of interactions of at most 2^(n-1) + 1 bodies: section 2 and equations 1 to 3 of the
document on the distributional simplicity bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.arrays import whole_tensor
from trialogue.errors import InputError, positive_number, truth_value, whole_number
from trialogue.models.networks import register_network
from trialogue.models.one_hot import OneHotNetwork, drawn_weights

_NAME = "factored-attention"


@dataclass(frozen=True, kw_only=True)
class FactoredAttentionConfig:
    """Shape of a `FactoredAttention`. Raises `InputError` where a field is out of range.

    Sequences have `sites` tokens of `vocab_size` values. `rank` is that of the value matrices, None for full ones.
    `layer_norm` normalises what each layer but the last adds up, over the vocabulary: logits then are no polynomials,
    and all orders appear. `initial_scale` multiplies the initial standard deviations, 1 / sqrt(sites) of attention and
    1 / sqrt(vocab_size) of values; small ones (0.1) are learned from order by order.
    """

    vocab_size: int
    sites: int
    layers: int = 1
    rank: int | None = None
    layer_norm: bool = False
    initial_scale: float = 1.0

    def __post_init__(self) -> None:
        for field, least in (("vocab_size", 2), ("sites", 1), ("layers", 1)):
            object.__setattr__(self, field, whole_number(field, getattr(self, field), least))
        if self.rank is not None:
            whole_number("rank", self.rank, 1, self.vocab_size)
        truth_value("layer_norm", self.layer_norm)
        positive_number("initial_scale", self.initial_scale)

    @property
    def max_order(self) -> int:
        """The most bodies of an interaction in a conditional: min(sites, 2^(layers-1) + 1), all with a layer norm."""
        if self.layer_norm and self.layers > 1:
            return self.sites
        return min(self.sites, 2 ** (self.layers - 1) + 1)


class _Layer(NamedTuple):
    """Attention (L, L), and values (V, V) or their factors (V, r) and (r, V)."""

    attention: Tensor
    values: tuple[Tensor, ...]

    def __call__(self, states: Tensor) -> Tensor:
        """A x V^T (..., L, V) of states x (..., L, V)."""
        return self.mixed(self.attention @ states)

    def mixed(self, states: Tensor) -> Tensor:
        """V x of every state (..., V)."""
        for factor in reversed(self.values):
            states = F.linear(states, factor)
        return states

    @property
    def of_tokens(self) -> Tensor:
        """V e_beta (V + 1, V) of every token beta, and zero for a masked site."""
        full = self.values[0] if len(self.values) == 1 else self.values[0] @ self.values[1]
        return F.pad(full.T, (0, 0, 0, 1))


@register_network(_NAME, FactoredAttentionConfig)
class FactoredAttention(OneHotNetwork):
    """The network of `config` with initial weights from the stream of `seed`; itself a masked oracle."""

    def __init__(self, config: FactoredAttentionConfig, seed: int = 0) -> None:
        if not isinstance(config, FactoredAttentionConfig):
            raise InputError("config", config, "give a FactoredAttentionConfig")
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
        return self._above(inputs, layers[0].attention @ layers[0].of_tokens[inputs], layers, sites)

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Logits (rows, N, vocab) of every site i, each masked in a copy of its own.

        Copies of a sequence share the first layer: masking a site subtracts what it adds. No gradients are carried.
        """
        tokens = self._require(whole_tensor("tokens", tokens, "give token ids (rows, N)"))
        answers = torch.empty(*tokens.shape, self.vocab_size, dtype=self.dtype, device=tokens.device)
        with torch.no_grad():
            layers = self._layers(self.dtype)
            first, vectors = layers[0].attention, layers[0].of_tokens
            device = first.device
            sites = torch.arange(self.sites, device=device)
            at_once = max(1, self.batch_size // self.sites)
            for part in torch.arange(len(tokens)).split(at_once):
                rows = tokens[part].to(device)
                added = vectors[rows]
                # Axes: row, masked site, site, vocabulary.
                copies = (first @ added)[:, None] - first.T[:, :, None] * added[:, :, None]
                hidden = rows[:, None].expand(-1, self.sites, -1).clone()
                hidden[:, sites, sites] = self.mask
                at = sites.repeat(len(rows))
                logits = self._above(hidden.flatten(0, 1), copies.flatten(0, 1), layers, at)
                answers[part] = logits.view(len(rows), self.sites, -1).to(answers.device)
        return answers

    def matrices(self, dtype: torch.dtype | None = None) -> list[tuple[Tensor, Tensor]]:
        """Of every layer its attention (N, N) and its values (V, V), in `dtype` and multiplied out."""
        return [(layer.attention, layer.of_tokens[:-1].T) for layer in self._layers(dtype)]

    @torch.no_grad()
    def effective_tensors(self) -> tuple[Tensor, Tensor]:
        """The three-body terms of two layers: J (N, N, N) and U (V, V, V) float64 of equation 3.

        The logit of token a at site i has the term sum over k, l of J_ikl U_(a x_k x_l), symmetric in k and l. Raises
        `InputError` for another number of layers, and with a layer norm.
        """
        if self.config.layers != 2 or self.config.layer_norm:
            raise InputError("layers", self.config.layers, "two layers without layer norm have these tensors")
        (below, low), (above, high) = self.matrices(torch.float64)
        couplings = torch.einsum("ij,jk,jl->ikl", above, below, below)
        return couplings, torch.einsum("ab,bc,bd->acd", high, low, low)

    def _above(self, inputs: Tensor, first: Tensor, layers: list[_Layer], sites: Tensor) -> Tensor:
        """Logits (n, V) at `sites` (n,), given what the first layer computes of `inputs`, `first` (n, N, V)."""
        rows = torch.arange(len(inputs), device=inputs.device)
        if len(layers) == 1:
            return first[rows, sites]
        states = F.one_hot(inputs, self.vocab_size + 1)[..., :-1].to(first.dtype)
        states = self._normed(states + first.square())
        for layer in layers[1:-1]:
            states = self._normed(states + layer(states).square())
        attention = layers[-1].attention[sites]
        return layers[-1].mixed((attention[:, None] @ states)[:, 0])

    def _normed(self, states: Tensor) -> Tensor:
        return F.layer_norm(states, states.shape[-1:]) if self.config.layer_norm else states

    def _layers(self, dtype: torch.dtype | None) -> list[_Layer]:
        each = 1 if self.config.rank is None else 2
        attention, values = ([part.to(dtype) for part in parts] for parts in (self.attention, self.values))
        return [
            _Layer(attention[layer], tuple(values[layer * each : (layer + 1) * each]))
            for layer in range(self.config.layers)
        ]
