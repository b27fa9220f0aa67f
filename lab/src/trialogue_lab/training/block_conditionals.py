"""Loss of an Ising model (spins ±1) in predicting masked spins, with derivatives by its parameters.

Equal samples are counted once, so the cost depends on the number of distinct samples, which is small for
small models. Values of the masked spins ("completions") are indexed as in
`trialogue_lab.training.block_moments`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from trialogue.errors import InputError
from trialogue_lab.training.block_moments import Floats, Indices, hadamard_transform, small_subsets

Bools = NDArray[np.bool_]

_MAX_COMPLETIONS = 2**26
_COMPLETIONS_AT_ONCE = 2**20


class _Contexts(NamedTuple):
    """Groups of samples in which the same k spins are masked and the other spins are equal (a context)."""

    sites: Indices  # (c, k), masked sites in ascending order
    outside: Floats  # (c, N), spins outside the mask, zero within
    share: Floats  # (c,), share of the samples
    context: Indices  # (p,), context of each pair
    inside: Floats  # (p, k), spins of each pair within its mask
    pair_share: Floats  # (p,), share of the samples


class BlockConditionals:
    """Mean negative log-likelihood of masked spins over samples, as a function of the Ising parameters.

    The parameters are the couplings of pairs i < j in lexicographic order, followed by the fields. The loss of a sample
    x with masked spins K is -log p(x_K | other spins).

    Args:
        up: Whether each spin is +1 (n, N).
        masks: Whether each spin is masked (n, N).

    Raises:
        InputError: If there are too many completions to enumerate.
    """

    def __init__(self, up: Bools, masks: Bools) -> None:
        samples, self.sites = up.shape
        self.first, self.second = np.triu_indices(self.sites, 1)
        self.parameters = len(self.first) + self.sites
        self._pair_index = np.zeros((self.sites, self.sites), dtype=np.int64)
        self._pair_index[self.first, self.second] = np.arange(len(self.first))
        self._pair_index += self._pair_index.T
        pairs, pair_of_sample = _find_distinct_rows(masks, up)
        pair_share = np.bincount(pair_of_sample) / samples
        masks, up = masks[pairs], up[pairs]
        spins = np.where(up, 1.0, -1.0)
        contexts, context = _find_distinct_rows(masks, up & ~masks)
        sizes = masks[contexts].sum(1)
        _check_completions(sizes)
        # Number of parameters whose statistics depend on the masked spins.
        self.touched = int((sizes * (sizes + 1) // 2 + sizes * (self.sites - sizes)).max())
        self._groups: list[_Contexts] = []
        for size in np.unique(sizes).tolist():
            members = np.flatnonzero(sizes == size)
            parts = -(-(len(members) << size) // _COMPLETIONS_AT_ONCE)
            for part in np.array_split(members, min(parts, len(members))):
                chosen = np.flatnonzero(np.isin(context, part))
                local = np.searchsorted(part, context[chosen])
                share = pair_share[chosen]
                sites = np.nonzero(masks[contexts[part]])[1].reshape(-1, size)
                inside = np.take_along_axis(spins[chosen], sites[local], 1)
                outside = np.where(masks, 0.0, spins)[contexts[part]]
                context_share = np.bincount(local, share).astype(np.float64)
                self._groups.append(_Contexts(sites, outside, context_share, local, inside, share))
        self._observed = np.zeros(self.parameters)
        for group in self._groups:
            states = (1 << np.arange(group.inside.shape[1])) @ (group.inside.T < 0)
            observed = np.zeros((len(group.share), 1 << group.sites.shape[1]))
            np.add.at(observed, (group.context, states), group.pair_share)
            self._observed += self._total(group, observed)

    def loss(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the mean loss, in nats per sample, and its gradient (d,)."""
        value, gradient = -float(self._observed @ parameters), -self._observed
        for group, log_z, distribution in self._solve(parameters):
            value += float(group.share @ log_z)
            gradient = gradient + self._total(group, group.share[:, None] * distribution)
        return value, gradient

    def curvature(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the Hessian of the mean loss and the mean outer product of gradients, both (d, d)."""
        hessian = np.zeros((self.parameters, self.parameters))
        scores = np.zeros_like(hessian)
        for group, _, distribution in self._solve(parameters):
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
                write_block, pairs = block == index, block[group.context] == index
                others = np.setdiff1d(np.arange(self.sites), sites)
                columns = self._touched_parameters(sites, others)
                outside = group.outside[write_block][:, others]
                hessian[columns] += _sum_covariances(
                    covariance[write_block], group.share[write_block], outside, len(sites)
                )
                outside = group.outside[group.context[pairs]][:, others]
                gradients = _compute_gradients(residual[pairs], outside, len(sites))
                scores[columns] += (group.pair_share[pairs][:, None] * gradients).T @ gradients
        return hessian, scores

    def _solve(self, parameters: Floats) -> Iterator[tuple[_Contexts, Floats, Floats]]:
        """Yield the conditional distributions (c, 2^k) of masked spins in c contexts, and the log normalizers."""
        for group in self._groups:
            energies = self._energies(group, parameters)
            log_z = logsumexp(energies, 1)
            yield group, log_z, np.exp(energies - log_z[:, None])

    def _energies(self, group: _Contexts, parameters: Floats) -> Floats:
        """Return the energies (c, 2^k) of the completions, from the parameters that involve masked spins."""
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
        """Return the gradient (d,) of sum over contexts and masked values of weights (c, 2^k) * log-weight."""
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

    def _touched_parameters(self, sites: Indices, others: Indices) -> tuple[NDArray[np.intp], ...]:
        """Return the indices of the parameters that involve the masked spins `sites` (k,)."""
        _, _, first, second = small_subsets(len(sites))
        fields = np.column_stack((len(self.first) + sites, self._pair_index[sites[:, None], others]))
        places = np.concatenate((fields.ravel(), self._pair_index[sites[first], sites[second]]))
        return np.ix_(places, places)


def _sum_covariances(local: Floats, weights: Floats, outside: Floats, k: int) -> Floats:
    """Return the weighted sum over contexts of the covariance matrix of the features with masked spins."""
    factors = np.column_stack((np.ones(len(outside)), outside))
    weighted = local * weights[:, None, None]
    spins = np.einsum("cab,cu,cv->aubv", weighted[:, :k, :k], factors, factors)
    mixed = np.einsum("cab,cu->aub", weighted[:, :k, k:], factors)
    size = k * factors.shape[1]
    corner = weighted[:, k:, k:].sum(0)
    mixed = mixed.reshape(size, len(corner))
    return np.block([[spins.reshape(size, size), mixed], [mixed.T, corner]])


def _compute_gradients(residual: Floats, outside: Floats, k: int) -> Floats:
    """Return the gradients of samples in the order of `_touched_parameters`.

    Args:
        residual: Masked spins and their pairs, minus their conditional means (p, k + k(k-1)/2).
        outside: Spins that are not masked (p, N - k).
        k: Number of masked spins.
    """
    factors = np.column_stack((np.ones(len(outside)), outside))
    spins = residual[:, :k, None] * factors[:, None]
    return np.concatenate((spins.reshape(len(residual), -1), residual[:, k:]), 1)


def _find_distinct_rows(*columns: Bools) -> tuple[Indices, Indices]:
    """Return the indices of distinct rows of matrices joined side by side, and for each row its place among them."""
    packed = np.packbits(np.concatenate(columns, 1), axis=1)
    keys = packed.view(f"V{packed.shape[1]}")[:, 0]
    _, places, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return places, inverse.reshape(-1)


def _check_completions(sizes: Indices) -> None:
    """Raise `InputError` if `sizes` (c,) masked spins have too many values to enumerate."""
    # Python integers, because 2^k of a large block overflows a NumPy integer.
    completions = sum(int(count) << size for size, count in enumerate(np.bincount(sizes)))
    if completions > _MAX_COMPLETIONS:
        hint = f"the samples' blocks have {completions:.1e} completions, more than {_MAX_COMPLETIONS:.1e}"
        raise InputError("block_size", int(sizes.max()), f"{hint}: use smaller blocks")
