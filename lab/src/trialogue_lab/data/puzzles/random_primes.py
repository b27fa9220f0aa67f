"""Random numbers and random primes with a fixed number of decimal digits.

Source: "Theoretical Limitations of Autoregressive Models", section "Randomized Tasks".
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sympy import isprime, sieve
from torch import Tensor

from trialogue.data.enumerable import ENUMERABLE_STATES
from trialogue.data.puzzles.weighted_prefixes import (
    Prefix,
    WeightedPrefixes,
    decimal_edges,
    from_digits,
    to_digits,
)
from trialogue.errors import InputError
from trialogue.randomness import Streams, derive_seed, numpy_generator
from trialogue.validation import Count, Natural, validated

LISTED_DIGITS = 7
"""Largest number of digits for which primes are listed: 586,081 primes of seven digits take 5 MB."""
INT64_DIGITS = 9
"""Largest number of digits for which products of two primes fit into 64 bits."""


@validated
def primes_of(digits: Count) -> NDArray[np.int64]:
    """Return all primes of `digits` decimal digits in ascending order, read-only.

    Raises:
        InputError: If `digits` exceeds `LISTED_DIGITS`.
    """
    if digits > LISTED_DIGITS:
        hint = f"there are about {_about_primes(digits)} such primes, too many to list: use at most {LISTED_DIGITS}"
        raise InputError("digits", digits, hint)
    return _list_primes(digits)


@cache
def _list_primes(digits: int) -> NDArray[np.int64]:
    primes = np.array(list(sieve.primerange(10 ** (digits - 1), 10**digits)), dtype=np.int64)
    primes.flags.writeable = False
    return primes


def _about_primes(digits: int) -> str:
    # Logarithms are compared, because the number may exceed the range of a float.
    power, fraction = divmod(digits - 1 + np.log10(9 / (digits * np.log(10) - 1)), 1)
    return f"{10**fraction:.1f}e+{power:02.0f}"


class DecimalDistribution(WeightedPrefixes):
    """Uniform distribution on numbers, or tuples of numbers, with a fixed number of decimal digits.

    A token is a digit. All sequences can be listed if there are at most `ENUMERABLE_STATES`. Larger distributions can
    be sampled, and some subclasses compute their next-digit probabilities.

    Attributes:
        digits: Number of digits of a number.
        max_length: Number of digits of a sequence.
    """

    vocab_size = 10
    digits: int
    max_length: int

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of numbers or tuples."""

    @abstractmethod
    def states(self) -> Tensor:
        """Return all numbers or tuples as sequences of digits, shape (size, max_length), int64."""

    def probabilities(self) -> Tensor:
        """Return the equal probabilities (size,) float64 of `states`."""
        size = self._enumerable()
        return torch.full((size,), 1 / size, dtype=torch.float64)

    def _enumerable(self) -> int:
        if self.size > ENUMERABLE_STATES:
            hint = (
                f"{self.size} sequences are too many to list (at most {ENUMERABLE_STATES}): use fewer digits"
            )
            raise InputError("digits", self.digits, hint)
        return self.size


class RandomNumbers(DecimalDistribution):
    """Uniform distribution on the numbers with exactly `digits` decimal digits.

    The paper gives the request "give me a random 6-digit number" as an example.
    """

    @validated
    def __init__(self, digits: Count = 6) -> None:
        self.digits = self.max_length = digits

    @property
    def size(self) -> int:
        """Number of numbers, 9 * 10^(digits - 1)."""
        return 9 * 10 ** (self.digits - 1)

    def states(self) -> Tensor:
        """Return all numbers (size, digits) int64 in ascending order."""
        size = self._enumerable()
        return split_digits(np.arange(size) + size // 9, self.digits)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Sample numbers. The i-th number depends on `seed` and i only.

        Args:
            n: How many numbers to sample.
            seed: Seed of the numbers.

        Returns:
            Digits (n, digits) int64.
        """
        rows = torch.arange(n)
        streams = Streams(derive_seed(seed, "random numbers"), rows)
        columns = [(streams.uniform(rows) * 9).long() + 1]
        columns += [(streams.uniform(rows) * 10).long() for _ in range(self.digits - 1)]
        return torch.stack(columns, 1)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return equal weights of all next digits. The first digit is not 0."""
        if prefix[:1] == (0,) or len(prefix) >= self.digits:
            return [0.0] * 10
        return [float(bool(prefix)), *[1.0] * 9]


class RandomPrimes(DecimalDistribution):
    """Uniform distribution on the primes with exactly `digits` decimal digits.

    Next-digit probabilities require a list of all primes. `sample` accepts any number of digits.
    """

    @validated
    def __init__(self, digits: Count) -> None:
        self.digits = self.max_length = digits

    @property
    def size(self) -> int:
        """Number of primes with `digits` digits."""
        return len(primes_of(self.digits))

    def states(self) -> Tensor:
        """Return all primes (size, digits) int64 in ascending order."""
        return split_digits(primes_of(self.digits), self.digits)

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """Sample primes. The i-th prime depends on `seed` and i only.

        Args:
            n: How many primes to sample.
            seed: Seed of the primes.

        Returns:
            Digits (n, digits) int64.
        """
        (primes,) = draw_primes(n, 1, self.digits, seed).T
        if primes.dtype == np.int64:
            return split_digits(primes, self.digits)
        rows = [to_digits(prime, self.digits) for prime in primes]
        return torch.tensor(rows, dtype=torch.int64).view(n, self.digits)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return, for each next digit, the number of primes that continue `prefix` with it."""
        primes = primes_of(self.digits)
        if len(prefix) >= self.digits:
            return [0.0] * 10
        counts = np.diff(np.searchsorted(primes, list(decimal_edges(prefix, self.digits))))
        weights: list[float] = counts.astype(float).tolist()
        return weights

    def expected_trials(self) -> Tensor:
        """Return the expected number of random completions of a prefix until one is prime, for each prefix length.

        A randomized algorithm of the paper generates a random prime in this way, one digit at a time. After k >= 1 of n
        digits, the number is (number of k-digit prefixes of primes) * 10^(n-k) / (number of primes).

        Returns:
            Expected numbers (digits,) float64, one per digit.
        """
        primes = primes_of(self.digits)
        completions = [10.0 ** (self.digits - k) for k in range(self.digits)]
        completions[0] *= 0.9
        prefixes = [len(np.unique(primes // 10 ** (self.digits - k))) for k in range(self.digits)]
        return torch.tensor(
            [number * each / len(primes) for number, each in zip(prefixes, completions, strict=True)],
            dtype=torch.float64,
        )


@validated
def draw_primes(n: Natural, each: Count, digits: Count, seed: int) -> NDArray[Any]:
    """Sample independent uniform primes with a fixed number of digits.

    The i-th sample depends on `seed` and i only. Up to `LISTED_DIGITS` digits, primes come from a list, and otherwise
    from random trials.

    Args:
        n: Number of samples.
        each: Number of primes per sample.
        digits: Number of digits of a prime.
        seed: Seed of the primes.

    Returns:
        Primes (n, each), of dtype int64 up to `INT64_DIGITS` digits and object beyond.
    """
    if digits <= LISTED_DIGITS:
        primes = primes_of(digits)
        streams = Streams(derive_seed(seed, "primes"), torch.arange(n))
        places = [(streams.uniform(torch.arange(n)) * len(primes)).long() for _ in range(each)]
        return primes[torch.stack(places, 1).numpy()]
    drawn = [
        [next(filter(isprime, random_numbers(digits, coins))) for _ in range(each)]
        for coins in (numpy_generator(seed, "primes", sample) for sample in range(n))
    ]
    return np.array(drawn, dtype=np.int64 if digits <= INT64_DIGITS else object).reshape(n, each)


def random_numbers(digits: int, coins: np.random.Generator, prefix: Prefix = ()) -> Iterator[int]:
    """Yield uniform random numbers that start with a prefix of digits, without a leading zero.

    Args:
        digits: Number of digits.
        coins: Random number generator.
        prefix: First digits of every number.
    """
    while True:
        rest = coins.integers(0, 10, digits - len(prefix)).tolist()
        if not prefix and rest:
            rest[0] = int(coins.integers(1, 10))
        yield from_digits((*prefix, *rest))


def split_digits(numbers: NDArray[np.int64], width: int) -> Tensor:
    """Return the decimal digits of numbers, most significant first.

    Args:
        numbers: Numbers (n,).
        width: Number of digits.

    Returns:
        Digits (n, width) int64.
    """
    places = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return torch.from_numpy(numbers[:, None] // places % 10)
