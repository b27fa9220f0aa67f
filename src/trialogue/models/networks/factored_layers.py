"""Layers of factored attention, and fast computation of the logits of every site with this site masked.

Masking one site changes the output of the first layer by a term of rank one. Networks of one or two layers without a
layer norm propagate this term in closed form. Other networks evaluate a separate copy of the sequence for each site.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.models.networks.one_hot import one_hot

Norm = Callable[[Tensor], Tensor]


class FactoredLayer(NamedTuple):
    """Layer of factored attention.

    Attributes:
        attention: Attention matrix A, (N, N).
        values: Value matrix (V, V), or its factors (V, r) and (r, V).
    """

    attention: Tensor
    values: tuple[Tensor, ...]

    def __call__(self, states: Tensor) -> Tensor:
        """Multiply states (..., N, V) by the attention matrix over the sites and the value matrix over the tokens."""
        *above, first = self.values
        states = self.attention @ F.linear(states, first)
        for factor in above:
            states = F.linear(states, factor)
        return states

    def apply_values(self, states: Tensor) -> Tensor:
        """Apply the value matrix to each state (..., V)."""
        for factor in reversed(self.values):
            states = F.linear(states, factor)
        return states

    @property
    def token_values(self) -> Tensor:
        """Value vectors (V + 1, V) of all tokens, with zeros for the mask token."""
        full = self.values[0] if len(self.values) == 1 else self.values[0] @ self.values[1]
        return F.pad(full.T, (0, 0, 0, 1))

    def token_value_vectors(self, tokens: Tensor) -> Tensor:
        """Return the row of the value matrix for each of the unmasked `tokens` (n, N), as (n, N, V)."""
        first = self.values[-1].T
        if len(self.values) == 1:
            return F.embedding(tokens, first)
        if tokens.numel() < len(first):
            return F.linear(F.embedding(tokens, first), self.values[0])
        return F.embedding(tokens, first @ self.values[0].T)

    def token_entries(self, states: Tensor, tokens: Tensor) -> Tensor:
        """Return the entry (n, N) of the value matrix times states (n, N, V) that belongs to the token at each site."""
        for factor in reversed(self.values[1:]):
            states = F.linear(states, factor)
        return torch.einsum("nir,nir->ni", states, F.embedding(tokens, self.values[0]))

    def pair_values(self, tokens: Tensor) -> Tensor:
        """Return the entries V_ab (n, N, N) of the value matrix for the tokens a and b at each pair of sites."""
        if len(self.values) == 1:
            return self.values[0][tokens[:, :, None], tokens[:, None, :]]
        left, right = F.embedding(tokens, self.values[0]), F.embedding(tokens, self.values[1].T)
        return left @ right.mT


def masked_logits(
    layers: Sequence[FactoredLayer], tokens: Tensor, copies_at_once: int, norm: Norm | None = None
) -> Tensor:
    """Compute the logits of every site given all other sites (with this site masked).

    Args:
        layers: Layers of the network.
        tokens: Unmasked tokens, (n, N) int64.
        copies_at_once: Maximum number of copies of sequences in memory.
        norm: Layer norm after every layer but the last, or None.

    Returns:
        Logits, (n, N, V).
    """
    if len(layers) == 1:
        return _without_self(layers[0].attention) @ layers[0].token_value_vectors(tokens)
    return layers[-1].apply_values(_attend_masked_sites(layers, tokens, copies_at_once, norm))


def masked_token_logits(
    layers: Sequence[FactoredLayer], tokens: Tensor, copies_at_once: int, norm: Norm | None = None
) -> Tensor:
    """Compute the logit of the given token at each site, with this site masked.

    Args:
        layers: Layers of the network.
        tokens: Unmasked tokens, (n, N) int64.
        copies_at_once: Maximum number of copies of sequences in memory.
        norm: Layer norm after every layer but the last, or None.

    Returns:
        Logits, (n, N).
    """
    if len(layers) == 1:
        return torch.einsum("ij,nij->ni", _without_self(layers[0].attention), layers[0].pair_values(tokens))
    return layers[-1].token_entries(_attend_masked_sites(layers, tokens, copies_at_once, norm), tokens)


def _attend_masked_sites(
    layers: Sequence[FactoredLayer], tokens: Tensor, copies_at_once: int, norm: Norm | None
) -> Tensor:
    """Return the output (n, N, V) of the last attention layer at each site i of a copy in which site i is masked."""
    first, last, added = layers[0].attention, layers[-1].attention, layers[0].token_value_vectors(tokens)
    summed, states = first @ added, one_hot(tokens, added.shape[-1], added.dtype)
    if len(layers) > 2 or norm is not None:
        rows, sites = torch.ones_like(tokens, dtype=torch.bool).nonzero().unbind(1)
        parts = zip(rows.split(copies_at_once), sites.split(copies_at_once), strict=True)
        by_copies = [_attend_copies(layers, summed, added, states, part, norm) for part in parts]
        return torch.cat(by_copies).view_as(added)
    # With site i masked, the state of site j is s_j + (summed_j - A_ji added_i)^2, without the term s_j for j = i.
    back = last * first.T
    attended = last @ (states + summed.square())
    attended -= added * (2 * (back @ summed) - (back * first.T).sum(1)[:, None] * added)
    own = last.diagonal().expand(tokens.shape)[..., None]
    return attended.scatter_add_(-1, tokens[..., None], -own)


def _attend_copies(
    layers: Sequence[FactoredLayer],
    summed: Tensor,
    added: Tensor,
    states: Tensor,
    copies: tuple[Tensor, Tensor],
    norm: Norm | None,
) -> Tensor:
    """Return the output (c, V) of the last attention layer for c copies of rows, each with one masked site."""
    rows, sites = copies
    back = layers[0].attention.T[sites]
    copy_states = (summed[rows] - back[:, :, None] * added[rows, sites][:, None]).square_()
    copy_states += states[rows]
    copy_states[torch.arange(len(rows), device=rows.device), sites] -= states[rows, sites]
    return attend_last_layer(layers, copy_states, sites, norm)


def attend_last_layer(
    layers: Sequence[FactoredLayer], states: Tensor, sites: Tensor, norm: Norm | None
) -> Tensor:
    """Return the attention output of the last layer, given the states after the first layer.

    All layers in between are applied. In the last layer, states are averaged with the attention weights, and its value
    matrix is not applied.

    Args:
        layers: All layers of the network.
        states: States after the first layer, (n, N, V).
        sites: Index (n,) int64 of the site at which the output of each row is computed.
        norm: Layer norm after every layer but the last, or None.

    Returns:
        Attention output of the last layer at these sites, (n, V).
    """
    states = states if norm is None else norm(states)
    for layer in layers[1:-1]:
        states = states + layer(states).square()
        states = states if norm is None else norm(states)
    return (layers[-1].attention[sites][:, None] @ states)[:, 0]


def _without_self(attention: Tensor) -> Tensor:
    return attention - attention.diagonal().diag()
