"""Conditional distributions of blocks of an Ising model given the rest, over samples: loss, gradient, curvature,
scores.

A context is a mask K with the spins outside it. Samples that share mask and spins are counted once, and contexts that
share them too, so that a small model costs what its distinct contexts cost, and a large one what its samples do.

Completions are indexed as in `trialogue_lab.training.block_moments`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from trialogue.errors import InputError
from trialogue_lab.training.block_moments import Floats, Indices, hadamard_transform, small_subsets

Bools = NDArray[np.bool_]

_COMPLETIONS = 2**26
_COMPLETIONS_AT_ONCE = 2**20


class _Contexts(NamedTuple):
    """Contexts whose masks have k sites each, and the distinct pairs (K, x) that fall into them."""

    sites: Indices  # (c, k), ascending
    outside: Floats  # (c, N) spins, zero within the mask
    share: Floats  # (c,) of the samples
    context: Indices  # (p,) of each pair
    inside: Floats  # (p, k) spins of each pair within its mask
    pair_share: Floats  # (p,) of the samples


class BlockConditionals:
    """The mean of -log p(x_K | x_-K, K) over samples as a function of the parameters (pairs i<j, then fields).

    `up` (n, N) says which spins are +1, `masks` (n, N) which sites are masked. Raises `InputError` where there are too
    many completions to enumerate.
    """

    def __init__(self, up: Bools, masks: Bools) -> None:
        samples, self.sites = up.shape
        self.first, self.second = np.triu_indices(self.sites, 1)
        self.parameters = len(self.first) + self.sites
        self._place = np.zeros(
            (self.sites, self.sites), dtype=np.int64
        )  # of the pair (i, j) among the parameters
        self._place[self.first, self.second] = np.arange(len(self.first))
        self._place += self._place.T
        pairs, of_pair = _distinct(masks, up)
        pair_share = np.bincount(of_pair) / samples
        masks, up = masks[pairs], up[pairs]
        places, context = _distinct(masks, up & ~masks)
        sizes = masks[places].sum(1)
        _refuse_many(sizes)
        inside = sizes * (sizes + 1) // 2 + sizes * (self.sites - sizes)
        self.touched = int(inside.max())  # parameters whose statistics a mask leaves open
        self._groups: list[_Contexts] = []
        for size in np.unique(sizes).tolist():
            members = np.flatnonzero(sizes == size)
            parts = -(-(len(members) << size) // _COMPLETIONS_AT_ONCE)
            for part in np.array_split(members, min(parts, len(members))):
                place = np.full(len(places), -1)
                place[part] = np.arange(len(part))
                fallen = np.flatnonzero(place[context] >= 0)
                self._groups.append(
                    _contexts(masks, up, places[part], fallen, place[context[fallen]], pair_share[fallen])
                )
        self._observed = np.zeros(self.parameters)
        for group in self._groups:
            states = (1 << np.arange(group.inside.shape[1])) @ (group.inside.T < 0)
            observed = np.zeros((len(group.share), 1 << group.sites.shape[1]))
            np.add.at(observed, (group.context, states), group.pair_share)
            self._observed += self._total(group, observed)
        self._point, self._laws = np.full(self.parameters, np.nan), list[Floats]()

    def loss(self, parameters: Floats) -> tuple[float, Floats]:
        """Mean loss, in nats per sample, and its gradient (d,)."""
        value = -float(self._observed @ parameters)
        gradient = -self._observed
        log_partition = self._solve(parameters)
        for group, distribution, log_z in zip(self._groups, self._laws, log_partition, strict=True):
            value += float(group.share @ log_z)
            gradient = gradient + self._total(group, group.share[:, None] * distribution)
        return value, gradient

    def hessian_product(self, parameters: Floats, direction: Floats) -> Floats:
        """The Hessian at `parameters` times `direction` (d,)."""
        self._solve(parameters)
        product = np.zeros(self.parameters)
        for group, distribution in zip(self._groups, self._laws, strict=True):
            change = self._energies(group, direction)
            change -= (distribution * change).sum(1, keepdims=True)
            product += self._total(group, group.share[:, None] * distribution * change)
        return product

    def curvature(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Hessian (d, d) of the mean loss, and mean outer product (d, d) of the samples' gradients."""
        self._solve(parameters)
        hessian = np.zeros((self.parameters, self.parameters))
        scores = np.zeros_like(hessian)
        for group, distribution in zip(self._groups, self._laws, strict=True):
            single, pair, first, second = small_subsets(group.sites.shape[1])
            subsets = np.concatenate((single, pair))
            moments = hadamard_transform(distribution)
            mean = moments[:, subsets]
            covariance = moments[:, subsets[:, None] ^ subsets] - mean[:, :, None] * mean[:, None]
            inside = group.inside
            residual = np.concatenate((inside, inside[:, first] * inside[:, second]), 1) - mean[group.context]
            blocks, block = np.unique(group.sites, axis=0, return_inverse=True)
            block = block.reshape(-1)
            for index, sites in enumerate(blocks):
                with_block, pairs = block == index, block[group.context] == index
                columns = self._columns(sites)
                outside = group.outside[with_block][:, columns.outside]
                hessian[columns.grid] += _spread(
                    covariance[with_block], group.share[with_block], outside, len(sites)
                )
                outside = group.outside[group.context[pairs]][:, columns.outside]
                gradients = _gradients(residual[pairs], outside, len(sites))
                scores[columns.grid] += (group.pair_share[pairs][:, None] * gradients).T @ gradients
        return hessian, scores

    def _solve(self, parameters: Floats) -> list[Floats]:
        """Logarithms of the partition functions, per group; keeps the conditional distributions at `parameters`."""
        if not np.array_equal(parameters, self._point):
            self._point = parameters.copy()
            energies = [self._energies(group, parameters) for group in self._groups]
            self._log_partition = [logsumexp(energy, 1) for energy in energies]
            self._laws = [
                np.exp(energy - log_z[:, None])
                for energy, log_z in zip(energies, self._log_partition, strict=True)
            ]
        return self._log_partition

    def _energies(self, group: _Contexts, parameters: Floats) -> Floats:
        """What the parameters that touch the mask give each completion: (c, 2^k)."""
        coupling = np.zeros((self.sites, self.sites))
        coupling[self.first, self.second] = parameters[: len(self.first)]
        coupling += coupling.T
        sites = group.sites
        single, pair, first, second = small_subsets(sites.shape[1])
        coefficients = np.zeros((len(sites), 1 << len(single)))
        field = parameters[len(self.first) :] + group.outside @ coupling
        coefficients[:, single] = np.take_along_axis(field, sites, 1)
        coefficients[:, pair] = coupling[sites[:, first], sites[:, second]]
        return hadamard_transform(coefficients)

    def _total(self, group: _Contexts, weights: Floats) -> Floats:
        """Sum (d,) over completions of `weights` (c, 2^k) times the statistics that touch the mask."""
        sites = group.sites
        single, pair, first, second = small_subsets(sites.shape[1])
        moments = hadamard_transform(weights)
        within = np.zeros(group.outside.shape)
        np.put_along_axis(within, sites, moments[:, single], 1)
        pairs = within.T @ group.outside
        places = sites[:, first] * self.sites + sites[:, second]
        both = np.bincount(places.ravel(), moments[:, pair].ravel(), self.sites**2)
        pairs += pairs.T + both.reshape(self.sites, self.sites)
        return np.concatenate((pairs[self.first, self.second], within.sum(0)))

    def _columns(self, sites: Indices) -> "_Columns":
        """Places of the parameters that touch the block `sites` (k,)."""
        _, _, first, second = small_subsets(len(sites))
        outside = np.setdiff1d(np.arange(self.sites), sites)
        fields = np.column_stack((len(self.first) + sites, self._place[sites[:, None], outside]))
        places = np.concatenate((fields.ravel(), self._place[sites[first], sites[second]]))
        return _Columns(outside, np.ix_(places, places))


class _Columns(NamedTuple):
    outside: Indices  # (N - k,) sites
    grid: tuple[
        NDArray[np.intp], ...
    ]  # of the parameters: fields with their couplings to the outside, pairs within


def _contexts(
    masks: Bools,
    up: Bools,
    places: Indices,
    pairs: Indices,
    context: Indices,
    pair_share: Floats,
) -> _Contexts:
    """Contexts that the pairs at `places` (c,) exemplify, with those at `pairs` (p,) that fall into them."""
    spins = np.where(up, 1.0, -1.0)
    size = int(masks[places[0]].sum())
    sites: Indices = np.nonzero(masks[places])[1].reshape(-1, size).astype(np.int64)
    inside = np.take_along_axis(spins[pairs], sites[context], 1)
    share = np.bincount(context, pair_share).astype(np.float64)
    return _Contexts(sites, np.where(masks, 0.0, spins)[places], share, context, inside, pair_share)


def _spread(local: Floats, weights: Floats, outside: Floats, k: int) -> Floats:
    """Weighted sum of covariances (c, q, q) of a block's spins and pairs, as one of all statistics that touch it.

    A spin of the block is a statistic times 1 (its field) and times each spin of `outside` (c, N - k).
    """
    factors = np.column_stack((np.ones(len(outside)), outside))
    weighted = local * weights[:, None, None]
    spins = np.einsum("cab,cu,cv->aubv", weighted[:, :k, :k], factors, factors)
    mixed = np.einsum("cab,cu->aub", weighted[:, :k, k:], factors)
    size = k * factors.shape[1]
    corner = weighted[:, k:, k:].sum(0)
    mixed = mixed.reshape(size, len(corner))
    return np.block([[spins.reshape(size, size), mixed], [mixed.T, corner]])


def _gradients(residual: Floats, outside: Floats, k: int) -> Floats:
    """Gradients (p, q) of samples, in the order of `_Columns`; `outside` (p, N - k) spins multiply those of the block.

    `residual` (p, k + pairs) is by how much the block's spins, and pairs of them, exceed their means.
    """
    factors = np.column_stack((np.ones(len(outside)), outside))
    spins = residual[:, :k, None] * factors[:, None]
    return np.concatenate((spins.reshape(len(residual), -1), residual[:, k:]), 1)


def _distinct(*columns: Bools) -> tuple[Indices, Indices]:
    """Places of the distinct rows of `columns` (n, m) side by side, and which of them each row is."""
    packed = np.packbits(np.concatenate(columns, 1), axis=1)
    words = np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))).view(np.uint64)
    if words.shape[1] == 1:
        _, places, which = np.unique(words[:, 0], return_index=True, return_inverse=True)
    else:
        _, places, which = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return places, which.reshape(-1)


def _refuse_many(sizes: Indices) -> None:
    largest = int(sizes.max())
    # As Python integers: 2^k of a large block does not fit into one of numpy.
    completions = sum(int(count) << size for size, count in enumerate(np.bincount(sizes)))
    if completions > _COMPLETIONS:
        hint = f"the samples' blocks have {completions:.1e} completions, the most is {_COMPLETIONS:.1e}"
        raise InputError("block_size", largest, f"{hint}: use smaller blocks")
