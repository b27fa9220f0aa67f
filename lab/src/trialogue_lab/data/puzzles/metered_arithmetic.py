"""Integer arithmetic that counts primality tests, multiplications and factoring steps.

Primality uses `isprime` of sympy. Factoring uses trial division or Pollard's rho (1975) as implemented by
sympy.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from sympy import isprime, pollard_rho

from trialogue.errors import InputError
from trialogue.validation import Natural, check, validated

Factoring = Literal["pollard-rho", "trial-division"]
_CHUNK = 1 << 16


class Operations(NamedTuple):
    """Numbers of arithmetic operations.

    Attributes:
        primality_tests: Number of primality tests.
        multiplications: Number of multiplications and divisions.
        factorings: Number of factorizations.
        factoring_steps: Number of trial divisions, or of iterations of Pollard's map (three per step of the cycle
            search).
        primes_read: Number of entries read from lists of primes, which grow exponentially with the number of digits.
    """

    primality_tests: int = 0
    multiplications: int = 0
    factorings: int = 0
    factoring_steps: int = 0
    primes_read: int = 0

    def __sub__(self, other: "Operations") -> "Operations":
        return Operations(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Arithmetic:
    """Integer arithmetic that counts its operations.

    Args:
        factoring: Factoring routine, "pollard-rho" (default) or "trial-division".
    """

    @validated
    def __init__(self, factoring: Factoring = "pollard-rho") -> None:
        self.factoring: Factoring = factoring
        self._tests = self._products = self._factorings = self._steps = self._read = 0

    @property
    def cost(self) -> Operations:
        """Numbers of operations so far."""
        return Operations(self._tests, self._products, self._factorings, self._steps, self._read)

    def is_prime(self, number: int) -> bool:
        """Return whether `number` is prime, and count one primality test."""
        number = check("number", number, Natural)
        self._tests += 1
        return bool(isprime(number))

    def product(self, first: int, second: int) -> int:
        """Return the product of two numbers, and count one multiplication."""
        self._products += 1
        return first * second

    def quotient(self, number: int, divisor: int) -> int:
        """Return the integer quotient of two numbers, and count one multiplication.

        Raises:
            InputError: If `divisor` is 0.
        """
        if divisor == 0:
            raise InputError("divisor", divisor, "divide by another number")
        self._products += 1
        return number // divisor

    def read(self, primes: int) -> None:
        """Count entries that are read from a list of primes.

        Args:
            primes: Number of entries.
        """
        self._read += primes

    def factor(self, semiprime: int) -> tuple[int, int]:
        """Return the two prime factors in ascending order.

        Raises:
            InputError: If `semiprime` is not a product of two primes, or exceeds 63 bits for trial division.
        """
        semiprime = check("semiprime", semiprime, Natural)
        if self.factoring == "trial-division" and semiprime >= 1 << 63:
            hint = "trial division takes numbers below 2^63: use pollard-rho"
            raise InputError("semiprime", semiprime, hint)
        self._factorings += 1
        root = math.isqrt(semiprime)
        first: int | None = root
        if root < 2 or root * root != semiprime:
            first = self._divide(semiprime) if self.factoring == "trial-division" else self._rho(semiprime)
        if first is None or not (isprime(first) and isprime(semiprime // first)):
            raise InputError("semiprime", semiprime, "give a product of two primes")
        second = semiprime // first
        return min(first, second), max(first, second)

    def _divide(self, number: int) -> int | None:
        """Return the smallest factor by trial division, or None for primes and below 4."""
        self._steps += 1
        if number < 4 or number % 2 == 0:
            return 2 if number >= 4 else None
        root = math.isqrt(number)
        for start in range(3, root + 1, 2 * _CHUNK):
            divisors = np.arange(start, min(start + 2 * _CHUNK, root + 1), 2)
            exact = np.flatnonzero(number % divisors == 0)
            if exact.size:
                self._steps += int(exact[0]) + 1
                return int(divisors[exact[0]])
            self._steps += len(divisors)
        return None

    def _rho(self, number: int) -> int | None:
        """Return a factor found by Pollard's rho, or None."""
        if number < 4 or isprime(number):
            return None
        if number % 2 == 0:
            return 2

        def iterate(x: int, constant: int) -> int:
            self._steps += 1
            return (x * x + constant) % number

        # sympy does not count steps, and chooses the constants of later tries itself, so it is called once per try.
        for constant in range(1, number - 2):
            divisor = pollard_rho(number, retries=0, F=lambda x, added=constant: iterate(x, added))
            if divisor is not None:
                return int(divisor)
        return None
