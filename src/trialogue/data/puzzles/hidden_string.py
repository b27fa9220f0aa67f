"""Tasks of constrained generation over bits: an oracle, and a perfect process verifier of the set A that it must hit.

The thesis's section 3.1 is about these: a hidden string (Theorem 3.1.1), subset sums (Theorem 3.1.2), one string
(Proposition 3.1.1) and all strings but one (Proposition 3.1.2). A verifier knows A alone (Definition 3.1.3): it says
whether some string of A begins so, and not whether the oracle can give one.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Interval, MinLen
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data.puzzles.weighted_prefixes import Prefix, WeightedPrefixes, one_hot
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Decoding, Verifier
from trialogue.validation import Count, Natural, Probability, Several, validated

_MOST_SUMS = 1 << 20
"""Partial sums of one length that a verifier lists."""


class HiddenString(WeightedPrefixes):
    """The oracle of Theorem 3.1.1: fair bits, and a last one that makes the parity even after `hidden` alone.

    `hidden` are D - 1 bits; after any other D - 1 bits the last one makes the parity odd (equations 3.1 and 3.2), so
    that `answer` is the one string of even parity that can occur. Raises `InputError` where `hidden` is no sequence
    of bits.
    """

    vocab_size = 2

    @validated
    def __init__(self, hidden: Several[Annotated[int, Interval(ge=0, le=1)]]) -> None:
        self.hidden: Prefix = tuple(hidden)
        self.max_length: int = len(self.hidden) + 1

    @property
    def answer(self) -> Prefix:
        """The only string of even parity that the oracle can give."""
        return (*self.hidden, sum(self.hidden) % 2)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Weights (2,) of the bit after `prefix`."""
        if len(prefix) >= self.max_length:
            return [0.0, 0.0]
        if len(prefix) < len(self.hidden):
            return [1.0, 1.0]
        return one_hot((sum(prefix) + (prefix != self.hidden)) % 2, 2)

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Whether the bits so far are those of the hidden string, and their parity (n, 2) int64."""
        bits = tokens * (torch.arange(tokens.shape[1]) < lengths[:, None])
        hidden = torch.zeros(tokens.shape[1], dtype=torch.int64)
        known = min(len(self.hidden), len(hidden))
        hidden[:known] = torch.tensor(self.hidden[:known], dtype=torch.int64)
        same = bits == hidden * (torch.arange(len(hidden)) < lengths[:, None])
        return torch.stack((same.all(1).long(), bits.sum(1) % 2), 1)


class SubsetSum(Verifier):
    """Perfect process verifier of the bit strings s of length D with sum_i s_i X_i among `totals`.

    The D `weights` X are whole numbers of at least 0. A prefix is viable if its own sum is one from which the weights
    that are left reach a total. These sums are listed beforehand: pseudo-polynomially many, and up to 2^D, as to tell
    whether the empty prefix is viable is the knapsack problem. Sequences of another length, or with other tokens than
    0 and 1, are not in A.

    Raises `InputError` where there is no weight, a weight or a total is no whole number of at least 0, their sums are
    beyond 2^62, or there are too many sums to list.
    """

    most = 1.0

    @validated
    def __init__(self, weights: Sequence[int], totals: Several[Natural]) -> None:
        self.weights = checked_weights(weights)
        if sum(self.weights) >= 1 << 62:
            raise InputError("weights", max(self.weights), "use weights whose sum is below 2^62")
        self.length = len(self.weights)
        # No subset reaches beyond the sum of all weights.
        within = {total for total in totals if total <= sum(self.weights)}
        sums: NDArray[np.int64] = np.array(sorted(within), dtype=np.int64)
        viable = [sums]
        for weight in reversed(self.weights):
            # Both are sorted, and merging them takes linear time.
            both = np.sort(np.concatenate((sums, sums[sums >= weight] - weight)), kind="stable")
            sums = both[np.diff(both, prepend=-1) > 0]
            if len(sums) > _MOST_SUMS:
                hint = f"more than {_MOST_SUMS} partial sums lead to a total: use fewer or smaller weights"
                raise InputError("weights", self.weights, hint)
            viable.append(sums)
        self._viable = viable[::-1]  # by length of the prefix

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """1 or 0 (n,) float64: a complete row is in A, another row can become one of A."""
        lengths, sums = decoding.lengths[rows], self._sums(decoding, rows)
        possible = (decoding.limit[rows] == self.length) & (
            ~decoding.complete[rows] | (lengths == self.length)
        )
        for length in lengths.unique().tolist():
            here = lengths == length
            known = self._viable[length] if length <= self.length else np.zeros(0, dtype=np.int64)
            possible[here] &= torch.from_numpy(np.isin(sums[here].numpy(), known))
        return possible.double()

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Sums (n, 1) int64 of viable rows, -1 of others."""
        viable = self.values(decoding, rows) > 0
        return torch.where(viable, self._sums(decoding, rows), -1)[:, None]

    def _sums(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Sums (n,) int64 of the weights that are taken; -1 where a token is no bit."""
        tokens, weights = decoding.tokens[rows], torch.zeros(decoding.tokens.shape[1], dtype=torch.int64)
        known = min(self.length, len(weights))
        weights[:known] = torch.tensor(self.weights[:known], dtype=torch.int64)
        tokens = tokens * (torch.arange(len(weights)) < decoding.lengths[rows, None])
        sums = torch.where(tokens == 1, weights, 0).sum(1)
        return torch.where((tokens > 1).any(1), -1, sums)


@validated
def checked_weights(weights: Annotated[Several[Natural], MinLen(1)]) -> tuple[int, ...]:
    """Return the weights of a knapsack; raises `InputError` unless they are one or more integers of at least 0."""
    return tuple(weights)


class ConstrainedTask(NamedTuple):
    """Constrained generation (Definition 3.1.2): produce a string of A, by `verifier`, that `oracle` can give, or FAIL.

    Strings have `length` tokens.
    """

    oracle: Autoregressive
    verifier: Verifier
    length: int


@validated
def fair_bits(length: Count) -> Table:
    """The uniform oracle over bit strings of `length`."""
    return Table(lambda _: (0.5, 0.5), 2, max_length=length, memory=0)


def hidden_string_task(hidden: Sequence[int]) -> ConstrainedTask:
    """The task of Theorem 3.1.1: even parity, which the oracle gives after the bits `hidden` alone."""
    oracle = HiddenString(hidden)
    length = oracle.max_length
    return ConstrainedTask(oracle, SubsetSum((1,) * length, range(0, length + 1, 2)), length)


@validated
def subset_sum_task(weights: Sequence[int], total: int, chance: Probability = 0.5) -> ConstrainedTask:
    """The task of Theorem 3.1.2: bits that pick weights X of sum `total`, each 1 with a `chance` between 0 and 1.

    The oracle gives every string. Raises `InputError` for a chance that is not inside, and wherever `SubsetSum` does.
    """
    verifier = SubsetSum(weights, (total,))
    oracle = Table(lambda _: (1 - chance, chance), 2, max_length=verifier.length, memory=0)
    return ConstrainedTask(oracle, verifier, verifier.length)


@validated
def all_zeros_task(length: Count) -> ConstrainedTask:
    """The task of Proposition 3.1.1: A holds the string of `length` zeros alone, bits are fair."""
    return ConstrainedTask(fair_bits(length), SubsetSum((1,) * length, (0,)), length)


@validated
def some_zero_task(length: Count) -> ConstrainedTask:
    """The task of Proposition 3.1.2: A holds all strings of `length` bits but that of ones, bits are fair."""
    return ConstrainedTask(fair_bits(length), SubsetSum((1,) * length, range(length)), length)
