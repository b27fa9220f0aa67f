"""Many-body distributions of token sequences, whose energies couple two, three or four sites.

The energies are equations 2 (for two sites) and 5 (for four sites) of the document on the distributional
simplicity bias. Here, the coupled sites are distinct, so that the conditionals of equation 4 belong to one
joint distribution.
"""

import math
import warnings
from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
import torch
from annotated_types import Ge, Interval
from torch import Tensor

from trialogue.arrays import Reals, require_bools
from trialogue.data.enumerable import Enumerable
from trialogue.data.many_body.many_body_kernel import ManyBodyKernel
from trialogue.data.many_body.subset_kernel import SubsetKernel
from trialogue.data.many_body.symmetric_sum_kernel import SymmetricSumKernel
from trialogue.data.many_body.variance import energy_variances
from trialogue.errors import InputError
from trialogue.indices import index_tensor, site_indices
from trialogue.oracles import Masked, list_sites
from trialogue.oracles.whole import enumerate_log_weights
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Finite, Natural, Positive, validated

FROZEN_DEVIATION = 100.0
"""Standard deviation of the energy over uniform sequences above which single-site chains are assumed to freeze."""
Order = Annotated[int, Interval(ge=2, le=4)]
_ONE_PROBABILITY = 0.8
_FACTORS_AND_OFFSETS = {"centred": (1.0, -_ONE_PROBABILITY), "signs": (2.0, -1.0), "binary": (1.0, 0.0)}


class ManyBody(Masked, Enumerable):
    """Distribution of token sequences in which two, three or four sites interact at once.

        p(s) ∝ exp(-E(s)),  E(s) = strength * sum over i_1, ..., i_k of J[i_1, ..., i_k] U[s_(i_1), ...,
        s_(i_k)]

    The sum runs over all ordered tuples of k = `order` distinct sites, and s_i is the token of site i. The
    tensors J and U are sums of outer powers of vectors, which keeps the number of parameters small.
    Conditional probabilities are exact, and `run_sweeps` runs compiled Gibbs sampling of many chains.

    Args:
        positions: Vectors (P, N) whose outer powers sum to J, with one entry per site. Converted to float64.
        vectors: Vectors (Q, V) whose outer powers sum to U, with one entry per token. Converted to float64.
        order: Number k of interacting sites, 2, 3 or 4 (default: 4).
        strength: Factor of the energy (default: 1).

    Raises:
        InputError: If the order is out of range, there are fewer than `order` sites or fewer than 2 tokens, a
            number is not finite, or the energy could overflow.
    """

    sites: int
    device = torch.device("cpu")

    @validated
    def __init__(
        self,
        positions: Annotated[Tensor, Reals("rank sites")],
        vectors: Annotated[Tensor, Reals("rank vocab")],
        order: Order = 4,
        strength: Finite = 1.0,
    ) -> None:
        for field, array, minimum in (("positions", positions, order), ("vectors", vectors, 2)):
            if array.shape[1] < minimum:
                hint = f"give finite vectors (rank, n) of at least {minimum} entries each"
                raise InputError(field, tuple(array.shape), hint)
        self.order, self.strength = order, strength
        self.positions, self.vectors = (array.double().contiguous().clone() for array in (positions, vectors))
        self.sites, self.vocab_size = self.positions.shape[1], self.vectors.shape[1]
        scale = (
            math.factorial(self.order) * abs(self.strength) * float(self.positions.abs().sum() ** self.order)
        )
        if not math.isfinite(scale * float(self.vectors.abs().max()) ** self.order * len(self.vectors)):
            raise InputError("strength", self.strength, "use a smaller one, because the energies overflow")

    @classmethod
    @validated
    def random(
        cls,
        sites: Count,
        vocab_size: Annotated[int, Ge(2)],
        order: Order = 4,
        rank: Count = 20,
        scale: Positive | None = 2.0,
        seed: Natural = 0,
        entries: Literal["centred", "signs", "binary"] = "centred",
    ) -> Self:
        """Create a distribution with random vectors.

        A warning is issued if the energy varies so much that Markov chains freeze.

        Args:
            sites: Number N of sites.
            vocab_size: Number V of tokens.
            order: Number k of interacting sites, 2, 3 or 4.
            rank: Number of vectors for the sites, and of vectors for the tokens (default: 20).
            scale: Standard deviation of the energy over uniformly random sequences (default: 2). None sets
                the strength to 1.
            seed: Random seed.
            entries: Values of the entries of all vectors. "binary" is 1 with probability 0.8 and 0 otherwise,
                "centred" is the same minus 0.8, and "signs" is 1 with probability 0.8 and -1 otherwise. With
                "binary" and "signs", most of the variance of the energy comes from terms on one or two sites.

        Raises:
            InputError: If an argument is out of range, or the energy is constant.
        """
        if sites < order:
            raise InputError("sites", sites, f"use at least {order}")
        factor, offset = _FACTORS_AND_OFFSETS[entries]
        generator = numpy_generator(seed, "many-body", entries)
        bits = [generator.random((rank, size)) < _ONE_PROBABILITY for size in (sites, vocab_size)]
        positions, vectors = (torch.from_numpy(factor * ones + offset) for ones in bits)
        distribution = cls(positions, vectors, order)
        if scale is not None:
            if not distribution.deviation > 0:
                hint = "use another seed or a larger rank, because the energy is constant"
                raise InputError("seed", seed, hint)
            distribution = cls(positions, vectors, order, scale / distribution.deviation)
        if distribution.deviation > FROZEN_DEVIATION:
            warnings.warn(
                f"the standard deviation of the energy over uniform sequences is {distribution.deviation:.3g}, so "
                "chains will freeze; use scale=2",
                stacklevel=2,
            )
        return distribution

    @cached_property
    def _variances(self) -> Tensor:
        factor = self.strength * math.factorial(self.order)
        return factor**2 * torch.from_numpy(energy_variances(self._positions, self._vectors, self.order))

    @property
    def deviation(self) -> float:
        """Exact standard deviation of the energy over uniformly random sequences."""
        return math.sqrt(float(self._variances.sum()))

    def variance_by_order(self) -> Tensor:
        """Decompose the variance of the energy by the number of interacting sites, for uniformly random tokens.

        The energy is a sum of uncorrelated terms, one for each set of sites.

        Returns:
            Exact fractions of the variance (order + 1,) float64. Entry r belongs to the terms on sets of r
            sites. All entries are 0 if the energy is constant.
        """
        total = float(self._variances.sum())
        return self._variances / total if total else self._variances

    def energy(self, tokens: Tensor) -> Tensor:
        """Return the energy E(s) of each sequence, where p(s) ∝ exp(-E(s)).

        Args:
            tokens: Sequences (rows, N) of token ids.

        Returns:
            Energies (rows,) float64.
        """
        # The sum of the fields counts every set of sites once for each of its `order` sites.
        tokens = self._tokens(tokens)
        return -self.site_logits(tokens).gather(2, tokens[:, :, None]).sum((1, 2)) / self.order

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Return log p(s_i | all other sites) for one site i per row.

        Args:
            tokens: Sequences (rows, N) int64. The token at the given site is ignored.
            sites: Index i (rows,) int64 of the site of each row.

        Returns:
            Log-probabilities (rows, V) float64.

        Raises:
            InputError: If a token or site is out of range, or a shape is wrong.
        """
        tokens = self._tokens(tokens)
        sites = site_indices(sites, len(tokens), self.sites)
        return self._fields(tokens, sites[:, None])[:, 0].log_softmax(-1)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Return log p(s_i | all other sites) for every site i.

        Args:
            tokens: Sequences (rows, N) of token ids.

        Returns:
            Log-probabilities (rows, N, V) float64.
        """
        return self.site_logits(tokens).log_softmax(-1)

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Return log p(s_i | all other sites) for every site i, up to a constant per site.

        Args:
            tokens: Sequences (rows, N) of token ids.

        Returns:
            Logits (rows, N, V) float64. Entry a of site i is the sum of the terms of -E that contain site i, if
            site i has token a.
        """
        return self._fields(self._tokens(tokens))

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return the marginal log-probabilities of every masked site given the tokens outside the mask.

        All joint values of the masked sites of a row are listed, so the cost is exponential in their number.

        Args:
            tokens: Sequences (rows, N) int64. Tokens at masked sites are ignored.
            masked: Mask (rows, N) bool, with any number of sites per row.

        Returns:
            Log-probabilities (rows, N, V) float64. At sites outside the mask, the log-probability is 0 for the
            given token and -inf for all others.

        Raises:
            InputError: If the masked sites of a row have too many joint values to list.
        """
        tokens = self._tokens(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        log_probs = torch.nn.functional.one_hot(tokens, self.vocab_size).double().log()
        sizes = masked.sum(1)
        for size in sizes.unique().tolist():
            rows = (sizes == size).nonzero()[:, 0]
            if size:
                log_probs[masked & (sizes == size)[:, None]] = self._marginals(tokens[rows], masked[rows])
        return log_probs

    @cached_property
    def kernel(self) -> ManyBodyKernel:
        """The faster one of the two compiled Gibbs samplers, `SymmetricSumKernel` and `SubsetKernel`, for this size."""
        arguments = (self._positions, self._vectors, self.order)
        costs = {kind: kind.nanoseconds(*arguments) for kind in (SymmetricSumKernel, SubsetKernel)}
        kind = min(costs, key=lambda kind: costs[kind])
        if math.isinf(costs[kind]):
            hint = (
                f"use fewer sites, because the tables for {self.vocab_size} tokens and rank "
                f"{len(self.positions)} would be too large"
            )
            raise InputError("sites", self.sites, hint)
        return kind(*arguments, -self.strength * math.factorial(self.order))

    @property
    def _positions(self) -> np.ndarray:
        return np.asarray(self.positions.numpy())

    @property
    def _vectors(self) -> np.ndarray:
        return np.asarray(self.vectors.numpy())

    def _fields(self, tokens: Tensor, sites: Tensor | None = None) -> Tensor:
        """Return the fields (rows, m, V) of the given `sites` (rows, m) (default: all sites)."""
        if sites is None:
            sites = torch.arange(self.sites).expand_as(tokens)
        return torch.from_numpy(self.kernel.fields(tokens.contiguous().numpy(), sites.contiguous().numpy()))

    def _marginals(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Return log p (n, V) of all masked sites of rows that have the same number of masked sites."""
        sites, _ = list_sites(masked)
        size, vocab = sites.shape[1], self.vocab_size
        if size == 1:
            return self.site_log_weights(tokens, sites[:, 0])

        def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
            del rows
            return -self.energy(sequences)

        joint = (
            enumerate_log_weights(log_weights, tokens, sites, vocab)
            .log_softmax(1)
            .view([-1] + [vocab] * size)
        )
        axes = range(1, size + 1)
        distributions = [joint.movedim(axis, 1).reshape(len(tokens), vocab, -1).logsumexp(2) for axis in axes]
        return torch.stack(distributions, 1).flatten(0, 1)

    def _tokens(self, tokens: Tensor) -> Tensor:
        """Return `tokens` (rows, N) as int64, after a check of their shape and range."""
        hint = f"give token ids of shape (rows, {self.sites})"
        return index_tensor(
            "tokens",
            tokens,
            (None, self.sites),
            self.vocab_size,
            shape_hint=hint,
            range_hint=f"use tokens below {self.vocab_size}",
        )
