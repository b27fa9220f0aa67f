"""Layers of factored attention, and what they compute where every site of a sequence is masked in a copy of its own.

Copies of a sequence differ in one site, and so in a term of rank one after the first layer. Up to two layers that term
is carried through in closed form, and no copy is made; deeper stacks, and those with a layer norm, take copies from the
first layer on.
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
    """Attention (N, N), and values (V, V) or their factors (V, r) and (r, V)."""

    attention: Tensor
    values: tuple[Tensor, ...]

    def __call__(self, states: Tensor) -> Tensor:
        """A x V^T (..., N, V) of states x (..., N, V)."""
        *above, first = self.values
        states = self.attention @ F.linear(states, first)
        for factor in above:
            states = F.linear(states, factor)
        return states

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

    def added(self, tokens: Tensor) -> Tensor:
        """V e_x (n, N, V) of every one of the `tokens` (n, N), none of them masked."""
        first = self.values[-1].T
        if len(self.values) == 1:
            return F.embedding(tokens, first)
        if tokens.numel() < len(first):
            return F.linear(F.embedding(tokens, first), self.values[0])
        return F.embedding(tokens, first @ self.values[0].T)

    def at_tokens(self, states: Tensor, tokens: Tensor) -> Tensor:
        """The entries of V x (n, N) at `tokens` (n, N), of states x (n, N, V)."""
        for factor in reversed(self.values[1:]):
            states = F.linear(states, factor)
        return torch.einsum("nir,nir->ni", states, F.embedding(tokens, self.values[0]))

    def pairs(self, tokens: Tensor) -> Tensor:
        """V_ab (n, N, N) of the tokens a and b at every two sites of `tokens` (n, N)."""
        if len(self.values) == 1:
            return self.values[0][tokens[:, :, None], tokens[:, None, :]]
        left, right = F.embedding(tokens, self.values[0]), F.embedding(tokens, self.values[1].T)
        return left @ right.mT


def masked_logits(
    layers: Sequence[FactoredLayer], tokens: Tensor, copies_at_once: int, normed: Norm | None = None
) -> Tensor:
    """Logits (n, N, V) of every site of `tokens` (n, N), each masked by itself.

    `normed` is the layer norm of what a layer but the last adds up, None for none. Where copies are made, so many exist
    at once.
    """
    if len(layers) == 1:
        return _without_self(layers[0].attention) @ layers[0].added(tokens)
    return layers[-1].mixed(_attended(layers, tokens, copies_at_once, normed))


def masked_token_logits(
    layers: Sequence[FactoredLayer], tokens: Tensor, copies_at_once: int, normed: Norm | None = None
) -> Tensor:
    """Those of `masked_logits` at the token of each site (n, N): of one layer N^2 numbers of its two tensors."""
    if len(layers) == 1:
        return torch.einsum("ij,nij->ni", _without_self(layers[0].attention), layers[0].pairs(tokens))
    return layers[-1].at_tokens(_attended(layers, tokens, copies_at_once, normed), tokens)


def _attended(
    layers: Sequence[FactoredLayer], tokens: Tensor, copies_at_once: int, normed: Norm | None
) -> Tensor:
    """What the last of several layers mixes (n, N, V) at every site i of the copy in which i is masked."""
    first, last, added = layers[0].attention, layers[-1].attention, layers[0].added(tokens)
    summed, states = first @ added, one_hot(tokens, added.shape[-1], added.dtype)
    if len(layers) > 2 or normed is not None:
        rows, sites = torch.ones_like(tokens, dtype=torch.bool).nonzero().unbind(1)
        parts = zip(rows.split(copies_at_once), sites.split(copies_at_once), strict=True)
        by_copies = [_attended_by_copies(layers, summed, added, states, part, normed) for part in parts]
        return torch.cat(by_copies).view_as(added)
    # Site i masked, site j holds s_j + (summed_j - A_ji added_i)^2, and site i no s_i.
    back = last * first.T
    attended = last @ (states + summed.square())
    attended -= added * (2 * (back @ summed) - (back * first.T).sum(1)[:, None] * added)
    own = last.diagonal().expand(tokens.shape)[..., None]
    return attended.scatter_add_(-1, tokens[..., None], -own)


def _attended_by_copies(
    layers: Sequence[FactoredLayer],
    summed: Tensor,
    added: Tensor,
    states: Tensor,
    copies: tuple[Tensor, Tensor],
    normed: Norm | None,
) -> Tensor:
    """Those (c, V) of `copies`: of rows (c,) with sites (c,) masked."""
    rows, sites = copies
    back = layers[0].attention.T[sites]
    copied = (summed[rows] - back[:, :, None] * added[rows, sites][:, None]).square_()
    copied += states[rows]
    copied[torch.arange(len(rows), device=rows.device), sites] -= states[rows, sites]
    return attended_above(layers, copied, sites, normed)


def attended_above(
    layers: Sequence[FactoredLayer], states: Tensor, sites: Tensor, normed: Norm | None
) -> Tensor:
    """What the last of several layers mixes (n, V) at `sites` (n,), of what the first one left (n, N, V)."""
    states = states if normed is None else normed(states)
    for layer in layers[1:-1]:
        states = states + layer(states).square()
        states = states if normed is None else normed(states)
    return (layers[-1].attention[sites][:, None] @ states)[:, 0]


def _without_self(attention: Tensor) -> Tensor:
    return attention - attention.diagonal().diag()
