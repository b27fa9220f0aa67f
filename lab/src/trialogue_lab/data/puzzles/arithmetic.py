"""Tuples of two primes and their product, as digits in an easy and in a hard order.

Writing the primes first is easy: the product follows by multiplication. Writing the product first is hard:
the primes follow only by factoring. Tokens 0 to 9 are decimal digits, most significant first. All numbers are
zero-padded to a fixed width.

Source: "Theoretical Limitations of Autoregressive Models", section "Factoring".
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sympy import isprime
from torch import Tensor

from trialogue.data.puzzles.weighted_prefixes import (
    Prefix,
    decimal_edges,
    from_digits,
    one_hot,
    to_digits,
    token_rows,
)
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, check, validated
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_primes import (
    INT64_DIGITS,
    DecimalDistribution,
    RandomPrimes,
    draw_primes,
    primes_of,
    split_digits,
)

Order = Literal["product-first", "factors-first"]

PAIR_DIGITS = 6
"""Largest number of digits of a prime for which pairs are counted. Seven take a second per digit."""


class SemiprimeTuples(DecimalDistribution):
    """Uniform distribution on tuples [pq, p, q] or [p, q, pq] of two n-digit primes and their product.

    A sequence consists of 4n decimal digits: n for each prime and 2n for the product. Next-digit
    probabilities are exact. `sample` works for any number of digits, without computing probabilities.

    Args:
        digits: Number of digits n of a prime.
        order: "product-first" for [pq, p, q], or "factors-first" for [p, q, pq].
        arithmetic: Arithmetic that counts operations and selects the factoring routine.

    Raises:
        InputError: If the order is unknown. Methods raise it if n is too large for their computation.
    """

    @validated
    def __init__(
        self, digits: Count = 2, order: Order = "product-first", arithmetic: Arithmetic | None = None
    ) -> None:
        self.digits, self.order = digits, order
        self.max_length = 4 * self.digits
        self.arithmetic = Arithmetic() if arithmetic is None else arithmetic

    @property
    def size(self) -> int:
        """Number of ordered pairs of primes."""
        return len(primes_of(self.digits)) ** 2

    def states(self) -> Tensor:
        """Return the digits of all tuples (size, 4n) int64, sorted by p and then by q."""
        self._enumerable()
        primes = primes_of(self.digits)
        return self._written(np.repeat(primes, len(primes)), np.tile(primes, len(primes)))

    def sample(self, n: int, seed: int = 0) -> Tensor:
        """Sample tuples. The i-th tuple depends on `seed` and i only.

        Args:
            n: Number of tuples.
            seed: Seed of the tuples.

        Returns:
            Token ids (n, 4 digits) int64.
        """
        pairs = draw_primes(n, 2, self.digits, seed)
        if self.digits > INT64_DIGITS:
            return self.encode([self.ordered(p, q) for p, q in pairs.tolist()])
        return self._written(pairs[:, 0], pairs[:, 1])

    def encode(self, tuples: Sequence[Sequence[int]]) -> Tensor:
        """Write tuples digit by digit.

        Args:
            tuples: The three numbers of each tuple, in the order given by the attribute `order`.

        Returns:
            Token ids (n, 4n) int64.

        Raises:
            InputError: If a tuple is not three integers that fit their numbers of digits.
        """
        rows = []
        for given in tuples:
            numbers = [check("tuples", number, Natural) for number in given]
            fits = len(numbers) == 3 and all(
                number < 10**width for number, width in zip(numbers, self._widths, strict=True)
            )
            if not fits:
                widths = ", ".join(map(str, self._widths))
                raise InputError("tuples", tuple(numbers), f"give three numbers of at most {widths} digits")
            rows.append(self.written(numbers))
        return torch.tensor(rows, dtype=torch.int64).view(len(rows), self.max_length)

    def written(self, numbers: Sequence[int]) -> Prefix:
        """Convert one tuple into its decimal digits. The three numbers are in the order given by `order`."""
        fields = zip(numbers, self._widths, strict=True)
        return tuple(digit for number, width in fields for digit in to_digits(number, width))

    def decode(self, tokens: Tensor) -> list[tuple[int, int, int]]:
        """Convert each sequence of digits into its three numbers, in the order given by `order`.

        Args:
            tokens: Token ids (n, 4n).

        Raises:
            InputError: If the shape is wrong or a token is not a digit.
        """
        tokens = token_rows(tokens, self.max_length)
        outside = tokens[(tokens < 0) | (tokens > 9)]
        if len(outside):
            raise InputError("tokens", int(outside[0]), "use digits from 0 to 9")
        fields = [tokens_of.tolist() for tokens_of in tokens.split(self._widths, 1)]
        numbers = [[from_digits(digits) for digits in field] for field in fields]
        return list(zip(*numbers, strict=True))

    def valid(self, tokens: Tensor) -> Tensor:
        """Return which sequences are two primes and their product.

        Args:
            tokens: Token ids (n, 4n).

        Returns:
            Booleans (n,).
        """
        tokens = token_rows(tokens, self.max_length)
        valid = ((tokens >= 0) & (tokens <= 9)).all(1)
        for row, numbers in zip(valid.nonzero()[:, 0].tolist(), self.decode(tokens[valid]), strict=True):
            product, p, q = self.factors_last(numbers)
            wide = self._has_width(p) and self._has_width(q)
            valid[row] = wide and p * q == product and bool(isprime(p) and isprime(q))
        return valid

    def factors_last(self, numbers: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return (product, p, q) for a tuple in the order given by `order`."""
        first, second, third = numbers
        return numbers if self.order == "product-first" else (third, first, second)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the unnormalized probabilities (10,) of the next digit after a prefix.

        Raises:
            InputError: If the product in the prefix is not a product of two primes.
        """
        n = self.digits
        first, second, third = (prefix[slice(*bounds)] for bounds in pairwise(accumulate((0, *self._widths))))
        if self.order == "product-first":
            if len(prefix) < 2 * n:
                return self._product_weights(prefix)
            return self._factor_weights(from_digits(first), second, third)
        if len(prefix) < n:
            return self._prime_weights(first)
        p = from_digits(first)
        if not self._is_factor(p):
            return [0.0] * 10
        if len(prefix) < 2 * n:
            return self._prime_weights(second)
        q = from_digits(second)
        return (
            _weigh_next_digit(self.arithmetic.product(p, q), 2 * n, third)
            if self._is_factor(q)
            else [0.0] * 10
        )

    @property
    def _widths(self) -> tuple[int, int, int]:
        n = self.digits
        return (2 * n, n, n) if self.order == "product-first" else (n, n, 2 * n)

    def ordered(self, p: int, q: int) -> tuple[int, int, int]:
        """Return the tuple of two primes: (pq, p, q) for "product-first", (p, q, pq) for "factors-first"."""
        return (p * q, p, q) if self.order == "product-first" else (p, q, p * q)

    def _written(self, p: NDArray[np.int64], q: NDArray[np.int64]) -> Tensor:
        n = self.digits
        fields = [split_digits(p, n), split_digits(q, n)]
        fields.insert(0 if self.order == "product-first" else 2, split_digits(p * q, 2 * n))
        return torch.cat(fields, 1)

    def _is_factor(self, number: int) -> bool:
        return self._has_width(number) and self.arithmetic.is_prime(number)

    def _has_width(self, number: int) -> bool:
        return 10 ** (self.digits - 1) <= number < 10**self.digits

    def _factor_weights(self, product: int, first: Prefix, second: Prefix) -> Sequence[float]:
        """Return weights of the next digit of the two factors, given their digits so far, `first` and `second`."""
        n = self.digits
        if len(first) < n:
            factors = self.arithmetic.factor(product)
            written = {to_digits(factor, n) for factor in factors if all(map(self._has_width, factors))}
            fitting = [digits for digits in written if digits[: len(first)] == first]
            return [float(sum(digits[len(first)] == digit for digits in fitting)) for digit in range(10)]
        p = from_digits(first)
        if not self._is_factor(p):
            return [0.0] * 10
        q = self.arithmetic.quotient(product, p)
        fits = self.arithmetic.product(p, q) == product and self._is_factor(q)
        return _weigh_next_digit(q, n, second) if fits else [0.0] * 10

    def _prime_weights(self, prefix: Prefix) -> Sequence[float]:
        self.arithmetic.read(len(primes_of(self.digits)))
        return RandomPrimes(self.digits).weights(prefix)

    def _product_weights(self, prefix: Prefix) -> Sequence[float]:
        """Return, for each next digit, the number of ordered pairs whose product continues `prefix` with it."""
        if self.digits > PAIR_DIGITS:
            hint = f"the next digit of a product takes all pairs of primes: use at most {PAIR_DIGITS} digits"
            raise InputError("digits", self.digits, hint)
        primes = primes_of(self.digits)
        self.arithmetic.read(11 * len(primes))
        edges = np.array(list(decimal_edges(prefix, 2 * self.digits)))
        # For each p, the number of q such that p q is below the edge.
        below = np.searchsorted(primes, (edges[:, None] - 1) // primes, side="right").sum(1)
        weights: list[float] = np.diff(below).astype(float).tolist()
        return weights


def _weigh_next_digit(number: int, width: int, written: Prefix) -> list[float]:
    """Return weights of the next digit of `number` after `written`, zero if the digits differ."""
    if number >= 10**width:
        return [0.0] * 10
    digits = to_digits(number, width)
    fits = len(written) < width and digits[: len(written)] == written
    return one_hot(digits[len(written)], 10) if fits else [0.0] * 10
