"""Asymptotic covariances of models too large to enumerate, from samples and masks, with standard errors."""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from trialogue.arrays import whole_tensor
from trialogue.blocks import Blocks, StateLaw, Weights, adaptive_law
from trialogue.errors import InputError, whole_number
from trialogue.oracles import whole_sequences
from trialogue.randomness import Choose, Streams, seed_of
from trialogue.training.drawn_masks import DrawnMasks, draw_masks

_BATCHES = 20
_NUMBERS_AT_ONCE = 2_000_000


class SampledFamily(Protocol):
    """An exponential family that draws from itself: p(x) ∝ exp(-energy(x)), the energy linear in the features."""

    @property
    def sites(self) -> int:
        """Number of sites."""
        ...

    @property
    def vocab_size(self) -> int:
        """Number of tokens of a site."""
        ...

    def energy(self, tokens: Tensor) -> Tensor:
        """Energies (rows,) of `tokens` (rows, sites)."""
        ...

    def features(self, tokens: Tensor) -> Tensor:
        """Features (rows, parameters) float64."""
        ...

    def sample(self, n: int, seed: int) -> Tensor:
        """Independent states (n, sites)."""
        ...

    def draw_block(self, tokens: Tensor, block: Tensor, choose: Choose) -> Tensor:
        """`tokens` with x_block drawn given the rest; `block` (rows, sites) bool."""
        ...


class CovarianceEstimate(NamedTuple):
    """Gamma (parameters, parameters), its entries' standard errors, its trace and that of the trace."""

    covariance: Tensor
    standard_error: Tensor
    trace: float
    trace_error: float


def monte_carlo_covariance(
    model: SampledFamily,
    block_size: int | None = None,
    *,
    blocks: Blocks | None = None,
    weights: Weights | None = None,
    law: StateLaw | None = None,
    samples: int = 10_000,
    seed: int = 0,
    tokens: Tensor | None = None,
    table_sites: int = 8,
) -> CovarianceEstimate:
    """Gamma_PL = I_PL^{-1} (Lemmas 4.1.1, 4.1.2 and 4.3.3) with I_PL = E Cov(F | X_{-K}, K) a mean over draws.

    States are drawn from `model`, or given as `tokens` (samples, sites) where it cannot draw exactly; each gets one
    block K. A block of up to `table_sites` sites contributes its exact conditional covariance; a larger one
    1/2 (F(X) - F(X')) (F(X) - F(X'))^T with X'_K drawn given the rest, which has the same mean. The inverse is
    corrected for its bias by the jackknife over twenty batches, from which the errors come too; they hold
    asymptotically, for independent `tokens`. The block law is described as in `block_law`, an adaptive one as a
    function from tokens to (rows, blocks) probabilities.

    Raises `InputError` where the description is no block law, the samples do not give every batch two states or
    leave the information singular, and for an adaptive law with blocks above `table_sites`.
    """
    if tokens is None:
        tokens = model.sample(whole_number("samples", samples, 2 * _BATCHES), seed)
    mend = f"use tokens of the shape (samples, {model.sites}), samples {2 * _BATCHES} or more"
    tokens = whole_tensor("tokens", tokens, mend)
    if tokens.ndim != 2 or tokens.shape[1] != model.sites or len(tokens) < 2 * _BATCHES:
        raise InputError("tokens", tuple(tokens.shape), mend)
    if bool(((tokens < 0) | (tokens >= model.vocab_size)).any()):
        raise InputError("tokens", tokens.unique().tolist()[:4], f"use tokens 0 to {model.vocab_size - 1}")
    table_sites = whole_number("table_sites", table_sites, 0)
    drawn = draw_masks(tokens, block_size, blocks, weights, law, seed, "masks")
    streams = Streams(seed_of(seed, "redraws"), torch.arange(len(tokens)))
    if law is not None and drawn.blocks is not None and int(drawn.blocks.sum(1).max()) > table_sites:
        raise InputError("table_sites", table_sites, "an adaptive law needs every block within it")
    totals, counts = [], []
    for rows in torch.arange(len(tokens)).tensor_split(_BATCHES):
        batch = _Batch(model, tokens[rows], drawn.taken(rows), law, table_sites)
        totals.append(batch.information(partial(_choose_for, streams, rows)))
        counts.append(len(rows))
    return _jackknife(torch.stack(totals), torch.tensor(counts, dtype=torch.float64))


def _choose_for(streams: Streams, rows: Tensor, log_weights: Tensor, own: Tensor) -> Tensor:
    return streams.choose(log_weights, rows[own])


class _Batch:
    """The information summed over some states and their blocks."""

    def __init__(
        self,
        model: SampledFamily,
        tokens: Tensor,
        drawn: DrawnMasks,
        law: StateLaw | None,
        table_sites: int,
    ) -> None:
        self._model, self._tokens, self._masks, self._drawn = model, tokens, drawn.masks, drawn
        self._law, self._table_sites = law, table_sites

    def information(self, choose: Choose) -> Tensor:
        """Sum over the states of estimates of Cov(F | x_{-K}, K), (parameters, parameters)."""
        sizes = self._masks.sum(1)
        parts = [self._by_table(rows) for rows in self._tabulated(sizes)]
        redrawn = torch.nonzero(sizes > self._table_sites)[:, 0]
        if len(redrawn):
            other = self._model.draw_block(
                self._tokens[redrawn],
                self._masks[redrawn],
                lambda weights, rows: choose(weights, redrawn[rows]),
            )
            moved = self._model.features(self._tokens[redrawn]) - self._model.features(other)
            parts.append(moved.T @ moved / 2)
        return torch.stack(parts).sum(0)

    def _tabulated(self, sizes: Tensor) -> Iterator[Tensor]:
        """Rows of equal block size, few enough for their completions to fit."""
        width = self._model.features(self._tokens[:1]).shape[1]
        for size in sizes.unique().tolist():
            if size <= self._table_sites:
                rows = torch.nonzero(sizes == size)[:, 0]
                yield from rows.split(max(1, _NUMBERS_AT_ONCE // (self._model.vocab_size**size * width)))

    def _by_table(self, rows: Tensor) -> Tensor:
        mask = self._masks[rows]
        size = int(mask[0].sum())
        sites = mask.nonzero()[:, 1].view(-1, 1, size)
        values = whole_sequences(self._model.vocab_size, size)
        shape = (len(rows), len(values))
        completions = self._tokens[rows][:, None].repeat(1, len(values), 1)
        completions.scatter_(2, sites.expand(*shape, size), values.expand(*shape, size))
        flat = completions.flatten(0, 1)
        log_weights = -self._model.energy(flat).double().view(shape)
        _, blocks, chosen = self._drawn
        if self._law is not None and blocks is not None and chosen is not None:
            given = adaptive_law(self._law, flat, len(blocks)).view(*shape, -1)
            log_weights += given.gather(2, chosen[rows].view(-1, 1, 1).expand(*shape, 1))[:, :, 0].log()
        conditionals = log_weights.softmax(1)
        features = self._model.features(flat).double().view(*shape, -1)
        features -= torch.einsum("rc,rcp->rp", conditionals, features)[:, None]
        scores = (conditionals.sqrt()[:, :, None] * features).flatten(0, 1)
        return scores.T @ scores


def _jackknife(totals: Tensor, counts: Tensor) -> CovarianceEstimate:
    """Estimate and errors from the information summed over each batch, (batches, parameters, parameters)."""
    batches = len(counts)
    whole = _inverse(totals.sum(0) / counts.sum())
    without = torch.stack(
        [_inverse(rest) for rest in (totals.sum(0) - totals) / (counts.sum() - counts)[:, None, None]]
    )
    spread = (batches - 1) / batches
    traces = without.diagonal(dim1=1, dim2=2).sum(1)
    covariance = batches * whole - (batches - 1) * without.mean(0)
    return CovarianceEstimate(
        covariance,
        (spread * ((without - without.mean(0)) ** 2).sum(0)).sqrt(),
        float(covariance.trace()),
        math.sqrt(spread * float(((traces - traces.mean()) ** 2).sum())),
    )


def _inverse(information: Tensor) -> Tensor:
    factor, info = torch.linalg.cholesky_ex(information)
    if int(info):
        raise InputError(
            "samples",
            len(information),
            "the information of so many parameters is singular: draw more samples",
        )
    inverse: Tensor = torch.cholesky_inverse(factor)
    return inverse
