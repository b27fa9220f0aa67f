"""Factoring by generating tuples [pq, p, q], and the cost of each digit.

Given a product as a prompt, a generator of [pq, p, q] must continue with its factors (Claim 1 of the source).
If factoring is hard, such a generator is expensive. The algorithms of this module generate tuples digit by
digit, need no lists of primes, and count their operations in `arithmetic`.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from trialogue.data.puzzles.weighted_prefixes import Prefix, from_digits, to_digits
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.randomness import numpy_generator
from trialogue.samplers import generate
from trialogue.validation import Count, InstanceOf, Several, validated
from trialogue_lab.data.puzzles.arithmetic import Order, SemiprimeTuples
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic, Operations
from trialogue_lab.data.puzzles.random_primes import primes_of, random_numbers

Factors = tuple[int, int]


@validated
def digits_of_factors(product: Count) -> int:
    """Return the number n of digits of the two prime factors of a product. Both factors have n digits.

    It is ceil(log10(product) / 2), computed in exact arithmetic (footnote 3).

    Args:
        product: Product of two primes with equally many digits.
    """
    return (len(str(product)) + 1) // 2


@validated
def factor_by_generating(
    oracle: InstanceOf[Autoregressive], products: Several[Count], *, seed: int = 0
) -> list[Factors | None]:
    """Factor products by using them as prompts of a generator of tuples [pq, p, q] (Claim 1).

    Args:
        oracle: Next-token model with the token format of `SemiprimeTuples(n, "product-first")`.
        products: Products of two n-digit primes.
        seed: Seed of the generation.

    Returns:
        Factors of each product in the generated order, or None if the output is wrong. A generator with exactly the
        distribution of the tuples always succeeds.

    Raises:
        InputError: If the products have different lengths, or the generator writes sequences of another length.
    """
    sizes = {digits_of_factors(product) for product in products}
    if len(sizes) != 1:
        hint = "give one or more products whose factors all have the same number of digits"
        raise InputError("products", sorted(sizes), hint)
    (digits,) = sizes
    length = oracle.max_length
    # Without an end-of-sequence token, only the length determines the end of a tuple.
    if length is not None and (length < 4 * digits or (oracle.eos is None and length > 4 * digits)):
        hint = f"the generator writes {oracle.max_length} tokens, not {4 * digits}"
        raise InputError("products", products[0], hint)
    prompts = torch.tensor([to_digits(product, 2 * digits) for product in products])
    run = generate(oracle, prompts, max_new_tokens=2 * digits, seed=seed)
    return [
        _parse_factors(product, written[2 * digits :], digits)
        for product, written in zip(products, run.sequences(), strict=True)
    ]


def _parse_factors(product: int, written: Prefix, digits: int) -> Factors | None:
    if len(written) < 2 * digits or max(written) > 9:
        return None
    first, second = from_digits(written[:digits]), from_digits(written[digits:])
    least = 10 ** (digits - 1)
    return (first, second) if min(first, second) >= least and first * second == product else None


@validated
@dataclass(frozen=True)
class PrimeByTrials:
    """Randomized algorithm that generates a uniformly random prime, one digit per call.

    Each call completes the prefix with random digits until the number is prime. It returns the next digit of this
    prime.

    Args:
        digits: Number of digits of the prime.
        arithmetic: Arithmetic that tests primality and counts operations.
        most: Largest number of completions per call.
    """

    digits: Count
    arithmetic: Arithmetic
    most: Count = 100_000

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        """Complete `prefix` to a random prime, and return its next digit.

        Args:
            prefix: Digits so far.
            coins: Random number generator.

        Raises:
            InputError: If the prefix is complete or starts with 0, or `most` completions contain no prime.
        """
        hint = f"no {self.digits}-digit prime starts with this prefix"
        if len(prefix) >= self.digits or prefix[:1] == (0,):
            raise InputError("tokens", prefix, hint)
        for number in islice(random_numbers(self.digits, coins, prefix), self.most):
            if self.arithmetic.is_prime(number):
                return to_digits(number, self.digits)[len(prefix)]
        raise InputError("tokens", prefix, f"{hint}, after {self.most} trials")


@validated
@dataclass(frozen=True)
class TupleByTrials:
    """Randomized algorithm that generates two random primes and their product, one digit per call.

    In the order [p, q, pq], it generates the primes like `PrimeByTrials` and multiplies them. In the order
    [pq, p, q], it samples pairs of primes until their product starts with the prefix, which takes
    exponentially many pairs, and then factors the product.

    Args:
        digits: Number n of digits of a prime. A product has 2 n digits.
        order: "factors-first" or "product-first".
        arithmetic: Arithmetic that counts the operations.
        most: Largest number of completions or pairs per call.
    """

    digits: Count
    order: Order
    arithmetic: Arithmetic
    most: Count = 1_000_000

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        """Return a random next digit of a tuple that starts with `prefix`.

        Args:
            prefix: Digits so far.
            coins: Random number generator.

        Raises:
            InputError: If no tuple starts with the prefix, or `most` completions or pairs do not suffice.
        """
        n = self.digits
        if len(prefix) >= 4 * n:
            raise InputError("tokens", prefix, f"use a prefix of fewer than {4 * n} tokens")
        prime = PrimeByTrials(n, self.arithmetic, self.most)
        if self.order == "factors-first":
            if len(prefix) < 2 * n:
                return prime.next_token(prefix[:n] if len(prefix) < n else prefix[n:], coins)
            p, q = from_digits(prefix[:n]), from_digits(prefix[n : 2 * n])
            return self._digit(to_digits(self.arithmetic.product(p, q), 2 * n), 2 * n, prefix)
        if len(prefix) < 2 * n:
            return self._product_digit(prefix, coins)
        product, written = from_digits(prefix[: 2 * n]), prefix[2 * n :]
        if len(written) >= n:
            p = from_digits(written[:n])
            q = self.arithmetic.quotient(product, p) if p else 0
            exact = p * q == product and q < 10**n
            return self._digit(to_digits(q, n) if exact else (), 3 * n, prefix)
        factors = sorted({to_digits(factor, n) for factor in self.arithmetic.factor(product)})
        fitting = [digits for digits in factors if digits[: len(written)] == written]
        chosen = fitting[int(coins.integers(len(fitting)))] if fitting else ()
        return self._digit(chosen, 2 * n, prefix)

    def _digit(self, field: Prefix, start: int, prefix: Prefix) -> int:
        """Return the next digit of the number `field` (its digits), which starts at position `start` of the tuple."""
        written = prefix[start:]
        if len(field) <= len(written) or field[: len(written)] != written:
            raise InputError("tokens", prefix, "no tuple starts with this prefix")
        return field[len(written)]

    def _product_digit(self, prefix: Prefix, coins: np.random.Generator) -> int:
        primes = filter(self.arithmetic.is_prime, random_numbers(self.digits, coins))
        for _ in range(self.most):
            product = self.arithmetic.product(next(primes), next(primes))
            digits = to_digits(product, 2 * self.digits)
            if digits[: len(prefix)] == prefix:
                return digits[len(prefix)]
        hint = f"none of {self.most} random products starts with this prefix: use a larger value of most"
        raise InputError("tokens", prefix, hint)


@validated
def second_number_cost(
    digits: int, order: Order, samples: Count, seed: int = 0, *, arithmetic: Arithmetic | None = None
) -> Operations:
    """Count the operations that generate the first digit of the second number of a tuple.

    A tuple contains two primes and their product. `TupleByTrials` generates it digit by digit. In the order
    "factors-first", the second number is a random prime. In the order "product-first", it is a factor of the first
    number, which the algorithm must factor.

    Args:
        digits: Number of digits of a prime.
        order: "factors-first" or "product-first".
        samples: Number of random tuples, with one call for each.
        seed: Seed of the tuples and of the algorithm.
        arithmetic: Arithmetic that counts the operations (default: a new one).

    Returns:
        Total operations over all tuples.
    """
    arithmetic = Arithmetic() if arithmetic is None else arithmetic
    distribution = SemiprimeTuples(digits, order)
    algorithm = TupleByTrials(digits, order, arithmetic)
    before = arithmetic.cost
    for place, row in enumerate(distribution.sample(samples, seed).tolist()):
        given = 2 * digits if order == "product-first" else digits
        algorithm.next_token(tuple(row[:given]), numpy_generator(seed, "coins", place))
    return arithmetic.cost - before


@validated
def first_number_costs(
    digits: int, order: Order, samples: Count, seed: int = 0, *, arithmetic: Arithmetic | None = None
) -> list[Operations]:
    """Count the operations that generate each digit of the first number of a tuple.

    A tuple contains two primes of n digits and their product. `TupleByTrials` generates it digit by digit. In the order
    "factors-first", the first number is a random prime. In the order "product-first", it is a product of 2 n digits. It
    is found by multiplying random primes until the product agrees with the previous digits.

    Args:
        digits: Number n of digits of a prime.
        order: "factors-first" or "product-first".
        samples: Number of random tuples, with one call for each digit.
        seed: Seed of the tuples and of the algorithm.
        arithmetic: Arithmetic that counts the operations (default: a new one).

    Returns:
        Operations for each digit, summed over tuples.
    """
    arithmetic = Arithmetic() if arithmetic is None else arithmetic
    algorithm = TupleByTrials(digits, order, arithmetic)
    tuples = SemiprimeTuples(digits, order).sample(samples, seed).tolist()
    costs = []
    for position in range(2 * digits if order == "product-first" else digits):
        before = arithmetic.cost
        for place, row in enumerate(tuples):
            algorithm.next_token(tuple(row[:position]), numpy_generator(seed, "coins", place, position))
        costs.append(arithmetic.cost - before)
    return costs


@validated
def share_factored(digits: Count, divisions: Count) -> float:
    """Return the probability that the product of two random primes is factored by a number of trial divisions.

    Args:
        digits: Number of digits of a prime.
        divisions: Number of divisions by 2, 3, 5, 7, 9, ..., which find factors up to 2 `divisions` - 1.

    Raises:
        InputError: If the primes are too many to list.
    """
    reach, primes = 2 * divisions - 1, primes_of(digits)
    beyond = 1 - float(np.searchsorted(primes, max(reach, 2), side="right")) / len(primes)
    return 1 - beyond**2
