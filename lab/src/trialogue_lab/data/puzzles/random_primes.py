"""Random numbers and random primes, written with a fixed number of decimal digits.

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
    digits_of,
    number_of,
)
from trialogue.errors import InputError
from trialogue.randomness import Streams, numpy_generator, seed_of
from trialogue.validation import Count, Natural, validated

LISTED_DIGITS = 7
"""Primes of more digits are not listed: there are 586,081 of seven digits, and they take 5 MB."""
INT64_DIGITS = 9
"""Products of two primes of more digits do not fit into 64 bits."""


@validated
def primes_of(digits: Count) -> NDArray[np.int64]:
    """All primes of so many decimal digits, ascending; read only. Raises `InputError` beyond `LISTED_DIGITS`."""
    if digits > LISTED_DIGITS:
        hint = f"there are about {_about_primes(digits)} such primes, too many to list: use at most {LISTED_DIGITS}"
        raise InputError("digits", digits, hint)
    return _listed(digits)


@cache
def _listed(digits: int) -> NDArray[np.int64]:
    primes = np.array(list(sieve.primerange(10 ** (digits - 1), 10**digits)), dtype=np.int64)
    primes.flags.writeable = False
    return primes


def _about_primes(digits: int) -> str:
    # By logarithms: the number itself may be beyond a float.
    power, fraction = divmod(digits - 1 + np.log10(9 / (digits * np.log(10) - 1)), 1)
    return f"{10**fraction:.1f}e+{power:02.0f}"


class DecimalLaw(WeightedPrefixes):
    """A uniform law on numbers, or tuples of numbers, written with a fixed number of digits.

    The states can be listed up to `ENUMERABLE_STATES`. A larger distribution can be sampled, and some subclasses also
    compute its next-digit probabilities.
    """

    vocab_size = 10
    digits: int
    max_length: int

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of sequences of the law."""

    @abstractmethod
    def states(self) -> Tensor:
        """All sequences (size, max_length) int64."""

    def probabilities(self) -> Tensor:
        """Probabilities (size,) float64 of `states`: all equal."""
        size = self._enumerable()
        return torch.full((size,), 1 / size, dtype=torch.float64)

    def _enumerable(self) -> int:
        if self.size > ENUMERABLE_STATES:
            hint = (
                f"{self.size} sequences are too many to list (at most {ENUMERABLE_STATES}): use fewer digits"
            )
            raise InputError("digits", self.digits, hint)
        return self.size


class RandomNumbers(DecimalLaw):
    """Numbers of exactly `digits` digits, uniformly: the source's "give me a random 6-digit number"."""

    @validated
    def __init__(self, digits: Count = 6) -> None:
        self.digits = self.max_length = digits

    @property
    def size(self) -> int:
        """9 10^(digits - 1)."""
        return 9 * 10 ** (self.digits - 1)

    def states(self) -> Tensor:
        """All numbers (size, digits) int64, ascending."""
        size = self._enumerable()
        return digit_rows(np.arange(size) + size // 9, self.digits)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Draw numbers (n, digits) int64; number i depends on `seed` and i alone."""
        rows = torch.arange(n)
        streams = Streams(seed_of(seed, "random numbers"), rows)
        columns = [(streams.uniform(rows) * 9).long() + 1]
        columns += [(streams.uniform(rows) * 10).long() for _ in range(self.digits - 1)]
        return torch.stack(columns, 1)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Equal weights, but none for a zero in front, or after the last digit."""
        if prefix[:1] == (0,) or len(prefix) >= self.digits:
            return [0.0] * 10
        return [float(bool(prefix)), *[1.0] * 9]


class RandomPrimes(DecimalLaw):
    """Primes of exactly `digits` digits, uniformly.

    As an oracle it counts the primes in each of the ten intervals that a prefix leaves open, which takes a list of
    them: raises `InputError` beyond `LISTED_DIGITS`. `sample` takes any number of digits.
    """

    @validated
    def __init__(self, digits: Count) -> None:
        self.digits = self.max_length = digits

    @property
    def size(self) -> int:
        """Number of primes of so many digits."""
        return len(primes_of(self.digits))

    def states(self) -> Tensor:
        """All primes (size, digits) int64, ascending."""
        return digit_rows(primes_of(self.digits), self.digits)

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """Draw primes (n, digits) int64; prime i depends on `seed` and i alone."""
        (primes,) = draw_primes(n, 1, self.digits, seed).T
        if primes.dtype == np.int64:
            return digit_rows(primes, self.digits)
        rows = [digits_of(prime, self.digits) for prime in primes]
        return torch.tensor(rows, dtype=torch.int64).view(n, self.digits)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """How many primes continue `prefix` with each digit."""
        primes = primes_of(self.digits)
        if len(prefix) >= self.digits:
            return [0.0] * 10
        counts = np.diff(np.searchsorted(primes, list(decimal_edges(prefix, self.digits))))
        weights: list[float] = counts.astype(float).tolist()
        return weights

    def expected_trials(self) -> Tensor:
        """Expected number of random completions until one is prime, (digits,) float64, for each digit to be written.

        That is what the source's randomized algorithm needs per digit: at a prefix of k digits the number of k-digit
        prefixes of primes times 10^(n-k) / (number of primes), and 9 10^(n-1) / (number of primes) at k = 0.
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
    """`each` primes (n, each) for each of n samples, uniform and independent; sample i depends on `seed` and i alone.

    They are places in the list of primes, or found by trial where there is no list; int64 up to `INT64_DIGITS`, and
    Python's own numbers beyond.
    """
    if digits <= LISTED_DIGITS:
        primes = primes_of(digits)
        streams = Streams(seed_of(seed, "primes"), torch.arange(n))
        places = [(streams.uniform(torch.arange(n)) * len(primes)).long() for _ in range(each)]
        return primes[torch.stack(places, 1).numpy()]
    drawn = [
        [next(filter(isprime, random_numbers(digits, coins))) for _ in range(each)]
        for coins in (numpy_generator(seed, "primes", sample) for sample in range(n))
    ]
    return np.array(drawn, dtype=np.int64 if digits <= INT64_DIGITS else object).reshape(n, each)


def random_numbers(digits: int, coins: np.random.Generator, prefix: Prefix = ()) -> Iterator[int]:
    """Numbers of so many digits that begin with `prefix`, uniformly and without end; none begins with a zero."""
    while True:
        rest = coins.integers(0, 10, digits - len(prefix)).tolist()
        if not prefix and rest:
            rest[0] = int(coins.integers(1, 10))
        yield number_of((*prefix, *rest))


def digit_rows(numbers: NDArray[np.int64], width: int) -> Tensor:
    """Decimal digits (n, width) int64 of `numbers` (n,), the most significant first."""
    places = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return torch.from_numpy(numbers[:, None] // places % 10)
