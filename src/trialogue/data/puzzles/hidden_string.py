"""Tasks to generate a bit string that satisfies a constraint, each with a language model and a perfect verifier.

A perfect process verifier accepts a prefix if some valid string starts with it (Definition 3.1.3 of the
thesis). The tasks are from section 3.1 of the thesis: a hidden string (Theorem 3.1.1), subset sums (Theorem
3.1.2), a single valid string (Proposition 3.1.1) and all strings but one (Proposition 3.1.2).
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

_MAX_SUMS = 1 << 20
"""Maximum number of listed partial sums for one prefix length."""


class HiddenString(WeightedPrefixes):
    """Distribution of D bits that has even parity only after one hidden prefix (Theorem 3.1.1 of the thesis).

    The first D - 1 bits are fair and independent. If they equal `hidden`, the last bit makes the number of
    ones even. Otherwise it makes the number odd. `answer` is therefore the only possible string of even
    parity.

    Args:
        hidden: The D - 1 hidden bits.
    """

    vocab_size = 2

    @validated
    def __init__(self, hidden: Several[Annotated[int, Interval(ge=0, le=1)]]) -> None:
        self.hidden: Prefix = tuple(hidden)
        self.max_length: int = len(self.hidden) + 1

    @property
    def answer(self) -> Prefix:
        """The only string of even parity that the oracle can generate."""
        return (*self.hidden, sum(self.hidden) % 2)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the unnormalized probabilities of the next bit.

        Args:
            prefix: Previous bits.

        Returns:
            Weights (2,) of the bits 0 and 1. Both are 0 if the prefix is complete.
        """
        if len(prefix) >= self.max_length:
            return [0.0, 0.0]
        if len(prefix) < len(self.hidden):
            return [1.0, 1.0]
        return one_hot((sum(prefix) + (prefix != self.hidden)) % 2, 2)

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the two properties of each prefix that determine the distribution of its remaining bits.

        Args:
            tokens: Prefixes (n, width) int64 of bits, right-padded.
            lengths: Lengths (n,) int64 of the prefixes.

        Returns:
            Integers (n, 2) int64: 1 if the prefix agrees with the hidden string, and the parity of the number
            of ones.
        """
        bits = tokens * (torch.arange(tokens.shape[1]) < lengths[:, None])
        hidden = torch.zeros(tokens.shape[1], dtype=torch.int64)
        known = min(len(self.hidden), len(hidden))
        hidden[:known] = torch.tensor(self.hidden[:known], dtype=torch.int64)
        same = bits == hidden * (torch.arange(len(hidden)) < lengths[:, None])
        return torch.stack((same.all(1).long(), bits.sum(1) % 2), 1)


class SubsetSum(Verifier):
    """Verifier of bit strings that select weights with one of the given sums (knapsack problem).

    A bit string s selects the weights X_i with s_i = 1. A complete string is accepted if the selected weights
    have one of the sums `totals`. A prefix is accepted if it can be completed to an accepted string.

    Args:
        weights: The D weights X, integers of at least 0.
        totals: Accepted sums.

    Raises:
        InputError: If there is no weight, the sum of the weights is at least 2^62, or there are too many sums
            to list.
    """

    most = 1.0

    @validated
    def __init__(self, weights: Sequence[int], totals: Several[Natural]) -> None:
        self.weights = validate_weights(weights)
        if sum(self.weights) >= 1 << 62:
            raise InputError("weights", max(self.weights), "use weights whose sum is below 2^62")
        self.length = len(self.weights)
        # Larger totals are unreachable and might not fit into int64.
        reachable = {total for total in totals if total <= sum(self.weights)}
        sums: NDArray[np.int64] = np.array(sorted(reachable), dtype=np.int64)
        viable = [sums]
        for weight in reversed(self.weights):
            # Both parts are sorted, so a stable sort merges them in linear time.
            both = np.sort(np.concatenate((sums, sums[sums >= weight] - weight)), kind="stable")
            sums = both[np.diff(both, prepend=-1) > 0]
            if len(sums) > _MAX_SUMS:
                hint = f"use fewer or smaller weights, because there are more than {_MAX_SUMS} partial sums"
                raise InputError("weights", self.weights, hint)
            viable.append(sums)
        self._viable = viable[::-1]  # by length of the prefix

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return 1 for each row that is accepted, and 0 for other rows.

        A complete row is accepted if the sum of its weights is a total. Another row is accepted if its sum can
        still become a total.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) of the rows.

        Returns:
            Values (n,) float64.
        """
        lengths, sums = decoding.lengths[rows], self._sums(decoding, rows)
        possible = (decoding.limit[rows] == self.length) & (
            ~decoding.complete[rows] | (lengths == self.length)
        )
        for length in lengths.unique().tolist():
            here = lengths == length
            viable = self._viable[length] if length <= self.length else np.zeros(0, dtype=np.int64)
            possible[here] &= torch.from_numpy(np.isin(sums[here].numpy(), viable))
        return possible.double()

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return integer keys that identify rows with the same accepted continuations.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) of the rows.

        Returns:
            Keys (n, 1) int64. The key is the sum of the selected weights for accepted rows, and -1 for other rows.
        """
        viable = self.values(decoding, rows) > 0
        return torch.where(viable, self._sums(decoding, rows), -1)[:, None]

    def _sums(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return sums (n,) int64 of the selected weights, or -1 if a token is not a bit."""
        tokens, weights = decoding.tokens[rows], torch.zeros(decoding.tokens.shape[1], dtype=torch.int64)
        known = min(self.length, len(weights))
        weights[:known] = torch.tensor(self.weights[:known], dtype=torch.int64)
        tokens = tokens * (torch.arange(len(weights)) < decoding.lengths[rows, None])
        sums = torch.where(tokens == 1, weights, 0).sum(1)
        return torch.where((tokens > 1).any(1), -1, sums)


@validated
def validate_weights(weights: Annotated[Several[Natural], MinLen(1)]) -> tuple[int, ...]:
    """Convert weights to a tuple, and raise `InputError` unless they are one or more integers of at least 0."""
    return tuple(weights)


class ConstrainedTask(NamedTuple):
    """Task to generate a string of a set A from an oracle, or to report failure.

    This is constrained generation, Definition 3.1.2 of the thesis.

    Attributes:
        oracle: Distribution of strings that is sampled token by token.
        verifier: Verifier of the set A.
        length: Number of tokens of a string.
    """

    oracle: Autoregressive
    verifier: Verifier
    length: int


@validated
def fair_bits(length: Count) -> Table:
    """Return the uniform distribution of bit strings as an oracle.

    Args:
        length: Number of bits.
    """
    return Table(lambda _: (0.5, 0.5), 2, max_length=length, memory=0)


def hidden_string_task(hidden: Sequence[int]) -> ConstrainedTask:
    """Return the task of Theorem 3.1.1 of the thesis, to generate the only possible string of even parity.

    The set A contains the strings with an even number of ones. The oracle (`HiddenString`) produces such a string only
    after the bits `hidden`.

    Args:
        hidden: Hidden bits, all bits of the string except the last.
    """
    oracle = HiddenString(hidden)
    length = oracle.max_length
    return ConstrainedTask(oracle, SubsetSum((1,) * length, range(0, length + 1, 2)), length)


@validated
def subset_sum_task(weights: Sequence[int], total: int, chance: Probability = 0.5) -> ConstrainedTask:
    """Return the task of Theorem 3.1.2 of the thesis, to select weights with a given sum.

    Bit i selects weight X_i. The set A contains the strings whose selected weights have the sum `total`. The bits
    of the oracle are independent, so it can generate every string.

    Args:
        weights: Weights X, integers of at least 0.
        total: Required sum.
        chance: Probability of a 1, strictly between 0 and 1 (default: 0.5).
    """
    verifier = SubsetSum(weights, (total,))
    oracle = Table(lambda _: (1 - chance, chance), 2, max_length=verifier.length, memory=0)
    return ConstrainedTask(oracle, verifier, verifier.length)


@validated
def all_zeros_task(length: Count) -> ConstrainedTask:
    """Return the task of Proposition 3.1.1 of the thesis, where only the string of zeros is accepted.

    The oracle generates fair, independent bits.

    Args:
        length: Number of bits.
    """
    return ConstrainedTask(fair_bits(length), SubsetSum((1,) * length, (0,)), length)


@validated
def some_zero_task(length: Count) -> ConstrainedTask:
    """Return the task of Proposition 3.1.2 of the thesis, where all strings except the string of ones are accepted.

    The oracle generates fair, independent bits.

    Args:
        length: Number of bits.
    """
    return ConstrainedTask(fair_bits(length), SubsetSum((1,) * length, range(length)), length)
