"""Reduction of factoring to generating [pq, p, q], and the cost of each order of the tuple by digit.

Claim 1 of the source: given the product s as a prompt, a generator of [pq, p, q] must continue with the
factors of s. If factoring is hard, no polynomial-time autoregressive algorithm induces the distribution of
the tuples. The converse is `SemiprimeTuples(order="product-first")`, which factors.

The algorithms are those of the source. They are randomized, have no memory, and use fresh coins at each call.
Averaged over the coins, they are the oracles of `trialogue_lab.data.puzzles.arithmetic`. They need no lists
of primes and count their operations in `arithmetic`.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from trialogue.data.puzzles.weighted_prefixes import Prefix, digits_of, number_of
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
    """Return n = ceil(log10(s) / 2) for a product s of two n-digit primes (footnote 3), in exact arithmetic."""
    return (len(str(product)) + 1) // 2


@validated
def factor_by_generating(
    oracle: InstanceOf[Autoregressive], products: Several[Count], *, seed: int = 0
) -> list[Factors | None]:
    """Factor products by prompting a generator of [pq, p, q] (Claim 1).

    Args:
        oracle: Generator that writes like `SemiprimeTuples(n, "product-first")`.
        products: Products of two n-digit primes.
        seed: Seed of the generation.

    Returns:
        Factors of each product in the order written, or None if the output is not a factorization. An exact
        generator always succeeds.

    Raises:
        InputError: If the products or the sequences of the generator have other lengths.
    """
    sizes = {digits_of_factors(product) for product in products}
    if len(sizes) != 1:
        hint = "give one or more products of factors with one number of digits"
        raise InputError("products", sorted(sizes), hint)
    (digits,) = sizes
    length = oracle.max_length
    # Without an end of sequence, only the length says where a tuple ends.
    if length is not None and (length < 4 * digits or (oracle.eos is None and length > 4 * digits)):
        hint = f"the generator writes {oracle.max_length} tokens, not {4 * digits}"
        raise InputError("products", products[0], hint)
    prompts = torch.tensor([digits_of(product, 2 * digits) for product in products])
    run = generate(oracle, prompts, max_new_tokens=2 * digits, seed=seed)
    return [
        _factors(product, written[2 * digits :], digits)
        for product, written in zip(products, run.sequences(), strict=True)
    ]


def _factors(product: int, written: Prefix, digits: int) -> Factors | None:
    if len(written) < 2 * digits or max(written) > 9:
        return None
    first, second = number_of(written[:digits]), number_of(written[digits:])
    least = 10 ** (digits - 1)
    return (first, second) if min(first, second) >= least and first * second == product else None


@validated
@dataclass(frozen=True)
class PrimeByTrials:
    """Algorithm for a random prime: random completions of the prefix until one is prime.

    The next digit is taken from the prime that was found.

    Raises:
        InputError: If `most` completions contain no prime.
    """

    digits: Count
    arithmetic: Arithmetic
    most: Count = 100_000

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        """Return the digit after `prefix`."""
        told = f"no {self.digits}-digit prime begins like this"
        if len(prefix) >= self.digits or prefix[:1] == (0,):
            raise InputError("tokens", prefix, told)
        for number in islice(random_numbers(self.digits, coins, prefix), self.most):
            if self.arithmetic.is_prime(number):
                return digits_of(number, self.digits)[len(prefix)]
        raise InputError("tokens", prefix, f"{told}, after {self.most} trials")


@validated
@dataclass(frozen=True)
class TupleByTrials:
    """Algorithm for tuples in either order that uses trials, multiplications and, product first, factoring.

    In the product-first order, the digits of the product come from random pairs of primes whose product
    starts with the prefix. The expected number of pairs is exponential. Numbers in place of a prime are
    assumed to be prime.

    Raises:
        InputError: If no digit fits the prefix, or `most` completions or pairs do not suffice.
    """

    digits: Count
    order: Order
    arithmetic: Arithmetic
    most: Count = 1_000_000

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        """Return the digit after `prefix`."""
        n = self.digits
        if len(prefix) >= 4 * n:
            raise InputError("tokens", prefix, f"ask after fewer than {4 * n} tokens")
        prime = PrimeByTrials(n, self.arithmetic, self.most)
        if self.order == "factors-first":
            if len(prefix) < 2 * n:
                return prime.next_token(prefix[:n] if len(prefix) < n else prefix[n:], coins)
            p, q = number_of(prefix[:n]), number_of(prefix[n : 2 * n])
            return self._digit(digits_of(self.arithmetic.product(p, q), 2 * n), 2 * n, prefix)
        if len(prefix) < 2 * n:
            return self._product_digit(prefix, coins)
        product, written = number_of(prefix[: 2 * n]), prefix[2 * n :]
        if len(written) >= n:
            p = number_of(written[:n])
            q = self.arithmetic.quotient(product, p) if p else 0
            exact = p * q == product and q < 10**n
            return self._digit(digits_of(q, n) if exact else (), 3 * n, prefix)
        factors = sorted({digits_of(factor, n) for factor in self.arithmetic.factor(product)})
        fitting = [digits for digits in factors if digits[: len(written)] == written]
        chosen = fitting[int(coins.integers(len(fitting)))] if fitting else ()
        return self._digit(chosen, 2 * n, prefix)

    def _digit(self, field: Prefix, start: int, prefix: Prefix) -> int:
        """Return the next digit of `field`, which starts at position `start`."""
        written = prefix[start:]
        if len(field) <= len(written) or field[: len(written)] != written:
            raise InputError("tokens", prefix, "no tuple of the law begins like this")
        return field[len(written)]

    def _product_digit(self, prefix: Prefix, coins: np.random.Generator) -> int:
        primes = filter(self.arithmetic.is_prime, random_numbers(self.digits, coins))
        for _ in range(self.most):
            product = self.arithmetic.product(next(primes), next(primes))
            digits = digits_of(product, 2 * self.digits)
            if digits[: len(prefix)] == prefix:
                return digits[len(prefix)]
        hint = f"none of {self.most} random products begins like this: raise most"
        raise InputError("tokens", prefix, hint)


@validated
def second_number_cost(
    digits: int, order: Order, samples: Count, seed: int = 0, *, arithmetic: Arithmetic | None = None
) -> Operations:
    """Return the total operations of `TupleByTrials` for the first digit of the second number.

    The first number is given. In the factors-first order the digit belongs to a prime, in the product-first
    order to a factor. Tuples are sampled from their distribution.

    Args:
        digits: Number of digits of a prime.
        order: Order of the tuple.
        samples: Number of tuples, one call each.
        seed: Seed of the tuples and coins.
        arithmetic: Arithmetic that counts the operations.
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
    """Return the operations of `TupleByTrials` for each digit of the first number, summed over tuples.

    In the factors-first order, this number is a prime of n digits. In the product-first order, it is a
    product of 2n digits, generated from random pairs of primes until one matches the prefix. Each call has
    its own coins.
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
    """Return the share of tuples whose product trial division factors within a budget, exactly.

    Args:
        digits: Number of digits of a prime.
        divisions: Number of divisions by 2, 3, 5, 7, ..., which reach factors up to 2 `divisions` - 1.

    Raises:
        InputError: If the primes are too many to list.
    """
    reach, primes = 2 * divisions - 1, primes_of(digits)
    beyond = 1 - float(np.searchsorted(primes, max(reach, 2), side="right")) / len(primes)
    return 1 - beyond**2
