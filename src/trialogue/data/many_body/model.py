"""Many-body distributions: sequences of tokens whose energy couples two, three or four sites at a time, with exact
conditionals.

E(s) = strength * sum over distinct i_1, ..., i_k of J_(i_1 ... i_k) U_(s_(i_1) ... s_(i_k)) and p(s) ∝ exp(-E(s)), with
J = sum over p of j^p x ... x j^p and U = sum over q of u^q x ... x u^q: equations 2 (k = 2) and 5 (k = 4) of the
document on the distributional simplicity bias. Distinct indices, so that equation 4 gives the conditionals of one
distribution.
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
from trialogue.data.many_body.compiled_fields import CompiledFields
from trialogue.data.many_body.pair_sums import PairSums
from trialogue.data.many_body.subset_bins import SubsetBins
from trialogue.data.many_body.variance import energy_variances
from trialogue.errors import InputError
from trialogue.indices import index_tensor, site_indices
from trialogue.oracles import Masked, sites_of
from trialogue.oracles.whole import listed
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Finite, Natural, Positive, validated

FROZEN_DEVIATION = 100.0
"""Energies that vary more than this over uniform sequences leave single-site chains where they are."""
Order = Annotated[int, Interval(ge=2, le=4)]
_UP = 0.8
_OFFSETS = {"centred": (1.0, -_UP), "signs": (2.0, -1.0), "binary": (1.0, 0.0)}


class ManyBody(Masked, Enumerable):
    """The distribution of sequences of N = `sites` tokens with an energy of `order` k bodies, by vectors of its
    tensors.

    `positions` (P, N) holds the j^p and `vectors` (Q, V) the u^q; both become float64. It is an energy and a masked
    oracle whose conditionals are exact; `run_sweeps` draws thousands of chains by compiled heat bath.

    Raises `InputError` for an order other than 2, 3 and 4, fewer sites than that, and numbers that are not finite.
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
        for field, array, least in (("positions", positions, order), ("vectors", vectors, 2)):
            if array.shape[1] < least:
                hint = f"give finite vectors (rank, n) of at least {least} entries each"
                raise InputError(field, tuple(array.shape), hint)
        self.order, self.strength = order, strength
        self.positions, self.vectors = (array.double().contiguous().clone() for array in (positions, vectors))
        self.sites, self.vocab_size = self.positions.shape[1], self.vectors.shape[1]
        scale = (
            math.factorial(self.order) * abs(self.strength) * float(self.positions.abs().sum() ** self.order)
        )
        if not math.isfinite(scale * float(self.vectors.abs().max()) ** self.order * len(self.vectors)):
            raise InputError("strength", self.strength, "the energies overflow: use a smaller one")

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
        """A distribution of `rank` vectors each of positions and tokens, whose entries are Bernoulli(0.8), less 0.8
        ("centred").

        `scale` is the standard deviation of the energy over uniform sequences; None leaves the strength at 1. Entries
        of "signs" are ±1 with P(+1) = 0.8; such energies, and those of the "binary" entries 0 and 1 that the document
        prints, are mostly of one and two bodies. Warns where the energy varies so much that chains freeze, as at the
        printed strength. Raises `InputError` for a field out of range, and where all entries drawn are zero.
        """
        if sites < order:
            raise InputError("sites", sites, f"use at least {order}")
        factor, offset = _OFFSETS[entries]
        draw = numpy_generator(seed, "many-body", entries)
        drawn = [draw.random((rank, size)) < _UP for size in (sites, vocab_size)]
        positions, vectors = (torch.from_numpy(factor * ones + offset) for ones in drawn)
        distribution = cls(positions, vectors, order)
        if scale is not None:
            if not distribution.deviation > 0:
                hint = "the energy drawn does not vary: use another seed, or a larger rank"
                raise InputError("seed", seed, hint)
            distribution = cls(positions, vectors, order, scale / distribution.deviation)
        if distribution.deviation > FROZEN_DEVIATION:
            warnings.warn(
                f"the energy varies by {distribution.deviation:.3g} over uniform sequences: chains freeze at once "
                "(use scale=2)",
                stacklevel=2,
            )
        return distribution

    @cached_property
    def _variances(self) -> Tensor:
        factor = self.strength * math.factorial(self.order)
        return factor**2 * torch.from_numpy(energy_variances(self._positions, self._vectors, self.order))

    @property
    def deviation(self) -> float:
        """The standard deviation of the energy over uniform sequences, exact."""
        return math.sqrt(float(self._variances.sum()))

    def variance_by_order(self) -> Tensor:
        """The share (order + 1,) float64 of the energy's variance over uniform sequences by interaction order, exact.

        Entry r is that of the terms on r sites when every term averages to zero over each of its sites. Zero where the
        energy does not vary.
        """
        total = float(self._variances.sum())
        return self._variances / total if total else self._variances

    def energy(self, tokens: Tensor) -> Tensor:
        """E(s) (rows,) float64 of `tokens` (rows, N), with p(s) ∝ exp(-E(s))."""
        # Every set of sites counts in the fields of all its sites.
        tokens = self._tokens(tokens)
        return -self.site_logits(tokens).gather(2, tokens[:, :, None]).sum((1, 2)) / self.order

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(s_i | all others) (rows, vocab) float64 of one site i = `sites` (rows,) of each row.

        Raises `InputError` for tokens that are no sequences of the distribution, and unless there is one site for each.
        """
        tokens = self._tokens(tokens)
        at = site_indices(sites, len(tokens), self.sites)
        return self._fields(tokens, at[:, None])[:, 0].log_softmax(-1)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(s_i | all others) (rows, N, vocab) float64 of every site i."""
        return self.site_logits(tokens).log_softmax(-1)

    def site_logits(self, tokens: Tensor) -> Tensor:
        """The field (rows, N, vocab) float64 of every site: what the sets of sites with it add to -E, by its value."""
        return self._fields(self._tokens(tokens))

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(s_i | s outside the mask) (rows, N, vocab) float64 of each masked site; others are as they are.

        Raises `InputError` where the masked sites of a row take too many values to list.
        """
        tokens = self._tokens(tokens)
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        answer = torch.nn.functional.one_hot(tokens, self.vocab_size).double().log()
        sizes = masked.sum(1)
        for size in sizes.unique().tolist():
            rows = (sizes == size).nonzero()[:, 0]
            if size:
                answer[masked & (sizes == size)[:, None]] = self._marginals(tokens[rows], masked[rows])
        return answer

    @cached_property
    def kernel(self) -> CompiledFields:
        """Compiled fields and sweeps, of the two kinds the one that costs less at this rank and size."""
        arguments = (self._positions, self._vectors, self.order)
        costs = {kind: kind.nanoseconds(*arguments) for kind in (PairSums, SubsetBins)}
        kind = min(costs, key=lambda kind: costs[kind])
        if math.isinf(costs[kind]):
            hint = f"with {self.vocab_size} values and rank {len(self.positions)} its tables would not fit: use less"
            raise InputError("sites", self.sites, hint)
        return kind(*arguments, -self.strength * math.factorial(self.order))

    @property
    def _positions(self) -> np.ndarray:
        return np.asarray(self.positions.numpy())

    @property
    def _vectors(self) -> np.ndarray:
        return np.asarray(self.vectors.numpy())

    def _fields(self, tokens: Tensor, sites: Tensor | None = None) -> Tensor:
        """-E (rows, m, V) by value of each of the `sites` (rows, m), by default all, up to a constant of the rest."""
        if sites is None:
            sites = torch.arange(self.sites).expand_as(tokens)
        return torch.from_numpy(self.kernel.fields(tokens.contiguous().numpy(), sites.contiguous().numpy()))

    def _marginals(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p (masked sites of all rows, V) of rows that mask equally many sites."""
        sites, _ = sites_of(masked)
        size, vocab = sites.shape[1], self.vocab_size
        if size == 1:
            return self.site_log_weights(tokens, sites[:, 0])

        def log_weights(sequences: Tensor, rows: Tensor) -> Tensor:
            del rows
            return -self.energy(sequences)

        joint = listed(log_weights, tokens, sites, vocab).log_softmax(1).view([-1] + [vocab] * size)
        axes = range(1, size + 1)
        distributions = [joint.movedim(axis, 1).reshape(len(tokens), vocab, -1).logsumexp(2) for axis in axes]
        return torch.stack(distributions, 1).flatten(0, 1)

    def _tokens(self, tokens: Tensor) -> Tensor:
        """`tokens` (rows, N) int64; raises `InputError` where these are no sequences of the distribution."""
        hint = f"give token ids of shape (rows, {self.sites})"
        return index_tensor(
            "tokens",
            tokens,
            (None, self.sites),
            self.vocab_size,
            shape_hint=hint,
            range_hint=f"use tokens below {self.vocab_size}",
        )
