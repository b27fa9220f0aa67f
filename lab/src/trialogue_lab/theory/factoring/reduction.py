"""A generator of [pq, p, q] is a factoring algorithm, and what each order of the tuple costs, digit by digit.

Claim 1 of the source: prompted with the product s, a generator of [pq, p, q] must go on with the factors of s. So no
polynomial-time algorithm of the autoregressive type induces the law of the tuples, if semiprimes are hard to factor.
The way back is `SemiprimeTuples(order="product-first")`, which factors.

The algorithms here are those of the source, randomized and without memory: they know the digits written so far, and
coins that are fresh at every call (`randomized_algorithms`). Their average over the coins are the oracles of
`trialogue_lab.data.puzzles.arithmetic`. They need no lists of primes, and count their operations in `arithmetic`.
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
    """Footnote 3: n = ceil(log10(s) / 2) for the product s of two primes of n digits, computed in integers."""
    return (len(str(product)) + 1) // 2


@validated
def factor_by_generating(
    oracle: InstanceOf[Autoregressive], products: Several[Count], *, seed: int = 0
) -> list[Factors | None]:
    """The reduction of Claim 1: prompt a generator of [pq, p, q] with each product and read off what it goes on with.

    `oracle` writes as `SemiprimeTuples(n, "product-first")` does, and all products have factors of n digits. Returns
    the factors in the order written, or None where two factors of n digits were not written: an exact generator never
    fails, another may. Raises `InputError` where products or the generator's sequences have another length.
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
    """The source's algorithm for a random prime: random completions of the digits so far until one is prime.

    The next digit is that of the prime that was found. Raises `InputError` after `most` completions, so that what
    begins no prime does not run for ever.
    """

    digits: Count
    arithmetic: Arithmetic
    most: Count = 100_000

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        """The digit after `prefix`."""
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
    """The tuples in either order, with nothing but trials, multiplications, and, product first, factoring.

    Product first, digits of the product are those of random pairs of primes whose product begins with what is
    written, which takes as many pairs as there are such beginnings: an exponential number, too.

    What stands where a prime belongs is believed to be one. Raises `InputError` for an unknown order, where no digit
    fits what is written, and after `most` completions or pairs.
    """

    digits: Count
    order: Order
    arithmetic: Arithmetic
    most: Count = 1_000_000

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        """The digit after `prefix`."""
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
        """The digit of `field`, which begins at `start`, after `prefix`."""
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
    """What `TupleByTrials` spends on the first digit of the tuple's second number, given the first, per call.

    Factors first that is the digit of a prime, product first that of a factor. The tuples are drawn from the law.
    """
    arithmetic = Arithmetic() if arithmetic is None else arithmetic
    law = SemiprimeTuples(digits, order)
    algorithm = TupleByTrials(digits, order, arithmetic)
    before = arithmetic.cost
    for place, row in enumerate(law.sample(samples, seed).tolist()):
        given = 2 * digits if order == "product-first" else digits
        algorithm.next_token(tuple(row[:given]), numpy_generator(seed, "coins", place))
    return arithmetic.cost - before


@validated
def first_number_costs(
    digits: int, order: Order, samples: Count, seed: int = 0, *, arithmetic: Arithmetic | None = None
) -> list[Operations]:
    """What `TupleByTrials` spends on each digit of the tuple's first number in turn, in sum over so many tuples.

    Factors first that number is a prime of n digits; product first a product of 2n, whose digits are those of random
    pairs of primes (two multiplied for one multiplication) until one begins with what is written. Every call has
    coins of its own. The tuples are drawn from the law.
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
    """Share of the tuples whose product trial division factors within a budget, exactly.

    `divisions` count 2, then 3, 5, 7, ...: the budget reaches factors up to 2 `divisions` - 1. Two primes are drawn;
    the smaller must lie within reach. Raises `InputError` where the primes are too many to list.
    """
    reach, primes = 2 * divisions - 1, primes_of(digits)
    beyond = 1 - float(np.searchsorted(primes, max(reach, 2), side="right")) / len(primes)
    return 1 - beyond**2
