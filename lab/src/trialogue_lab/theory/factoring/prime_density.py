"""Random primes by a deterministic algorithm: integrals of the density of primes, then counting the last digits.

The next digit of an n-digit prime has ten probabilities, the shares of primes in the ten intervals that are left.
While an interval is long its share is that of the integral of 1 / ln x (the source's "log-1 x"), the logarithmic
integral; when at most `counted` digits are left they are counted by testing every number. The integral says nothing
about single numbers, so that the last digits have to be counted, and it is of use only where an interval holds many
primes.

Source: "Theoretical Limitations of Autoregressive Models", appendix, "Generating primes deterministically".
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.special import expi
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data.puzzles.weighted_prefixes import Prefix, WeightedPrefixes, decimal_edges
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, validated
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_primes import primes_of

_PLACES, _SHARES = np.polynomial.legendre.leggauss(20)
_PLACES, _SHARES = (_PLACES + 1) / 2, _SHARES / 2


class PrimesByDensity(WeightedPrefixes):
    """The deterministic generator of primes of `digits` digits as an oracle.

    A digit that leaves r digits after it is weighed by the integral where r >= `counted`, and otherwise by primality
    tests of all numbers in its interval, 10^(r + 1) for the ten of them: polynomial while `counted` is of the order
    of log n. Where a counted interval holds no prime, its share falls back to the integral. Raises `InputError` for
    `counted` below 0 or beyond `digits`.
    """

    vocab_size = 10

    @validated
    def __init__(self, digits: Count, counted: Natural, arithmetic: Arithmetic | None = None) -> None:
        _require_fewer(counted, digits)
        self.digits = self.max_length = digits
        self.counted = counted
        self.arithmetic = Arithmetic() if arithmetic is None else arithmetic

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Shares (10,) of the primes in the ten intervals after `prefix`, up to a factor; none for a leading zero."""
        if prefix[:1] == (0,) or len(prefix) >= self.digits:
            return [0.0] * 10
        zeros = [] if prefix else [0.0]
        intervals = list(pairwise(decimal_edges(prefix, self.digits)))[len(zeros) :]
        weights = [0.0]
        if self.digits - len(prefix) <= self.counted:
            weights = [
                float(sum(map(self.arithmetic.is_prime, range(first, last)))) for first, last in intervals
            ]
        if not any(weights):
            weights = [mean_density(first, last) for first, last in intervals]
        return [*zeros, *weights]


@validated
def mean_density(first: Natural, last: Natural) -> float:
    """Integral of 1 / ln x from `first` to `last` over their distance, but of nothing below 2, where no primes are.

    By Gauss-Legendre quadrature, to rounding where `last` is at most twice `first`, as with digits after a prefix:
    between large numbers the difference of their logarithmic integrals would be lost in rounding.
    """
    start = max(first, 2)
    if last <= start:
        return 0.0
    width = last - start
    logarithms = math.log(start) + np.log1p(_PLACES * (width / start))
    return float(_SHARES @ (1 / logarithms)) * (width / (last - first))


@validated
def density_integral(numbers: Annotated[ArrayLike, Reals("n")]) -> Tensor:
    """The logarithmic integral li(x) (n,) float64 of `numbers`, and li(2) below 2, where there are no primes."""
    return torch.from_numpy(np.asarray(expi(np.log(np.maximum(np.asarray(numbers), 2.0)))))


@validated
def density_variation(digits: Count, counted: Natural = 0) -> Tensor:
    """TV (digits,) float64 between the laws of the first 1, ..., n digits of `PrimesByDensity` and of a random prime.

    Exact, over all prefixes; the last digits are counted in the list of primes. Raises `InputError` where the primes
    are too many to list, or `counted` is out of range.
    """
    primes = primes_of(digits)
    _require_fewer(counted, digits)
    law, distances = np.ones(1), []
    for length in range(1, digits + 1):
        block = 10 ** (digits - length)
        edges = np.arange(10 ** (length - 1), 10**length + 1) * block
        # Of each prefix the ten intervals that follow it, but nine of the empty one.
        shares = np.diff(density_integral(edges).numpy()).reshape(len(law), -1)
        counts = np.diff(np.searchsorted(primes, edges)).reshape(len(law), -1)
        if digits - length < counted:
            shares = np.where(counts.sum(1, keepdims=True) > 0, counts, shares)
        law = (law[:, None] * shares / shares.sum(1, keepdims=True)).ravel()
        distances.append(np.abs(law - counts.ravel() / len(primes)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)


def uniform_variation(digits: int) -> Tensor:
    """TV (digits,) between the laws of the first k digits of a random number and of a random prime: the baseline."""
    primes = primes_of(digits)
    distances = []
    for length in range(1, digits + 1):
        edges = np.arange(10 ** (length - 1), 10**length + 1) * 10 ** (digits - length)
        shares = np.diff(np.searchsorted(primes, edges)) / len(primes)
        distances.append(np.abs(shares - 1 / len(shares)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)


def _require_fewer(counted: int, digits: int) -> None:
    if counted > digits:
        raise InputError("counted", counted, f"use at most digits={digits}")
