"""Closest approximation of the uniform distribution on tuples [pq, p, q] by a generator that rarely factors.

A generator writes product i with probability a_i and then its factors, which are correct with probability
p_i. In the target, product i has probability t_i. The overlap of both distributions is one minus their total
variation distance, sum_i min(a_i p_i, t_i). It is at most sqrt(sum_i t_i p_i) for any a_i, because min(u, v)
<= sqrt(u v).

Source: "Theoretical Limitations of Autoregressive Models", appendix.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data.puzzles.weighted_prefixes import ListedDistribution
from trialogue.errors import InputError
from trialogue.probabilities import validate_probabilities
from trialogue.validation import Count, Share, check, validated
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples

_SUM = 1e-9

Chances = Annotated[Tensor, Reals("semiprimes", least=0, most=1)]
"""One probability per product of two primes (semiprime)."""


class BestGenerator(NamedTuple):
    """Distribution of the best generator that writes a product of two primes first and often fails to factor it.

    Attributes:
        overlap: One minus the total variation distance between the generator and the target distribution.
        first: Probability (n,) with which the generator writes each product.
    """

    overlap: float
    first: Tensor


@validated
def overlap(success: Chances, first: Tensor, target: Tensor | None = None) -> float:
    """Return how much the distribution of a generator of [product, factor, factor] overlaps with the target.

    The overlap is one minus the total variation distance, sum_i min(a_i p_i, t_i).

    Args:
        success: Probability p_i of writing correct factors after product i, shape (n,).
        first: Probability a_i of writing product i first, shape (n,).
        target: Probability t_i of product i in the target distribution, shape (n,) (default: uniform).

    Raises:
        InputError: If an argument is not a probability or a distribution.
    """
    success, target = _check_probabilities(success, target)
    first = validate_probabilities("first", first, (len(success),), tolerance=_SUM)
    return float(torch.minimum(first * success, target).sum())


@validated
def overlap_bound(success: Chances, target: Tensor | None = None) -> float:
    """Return an upper bound on the overlap of any generator of [product, factor, factor] with the target.

    The overlap is one minus the total variation distance. The bound is sqrt(sum_i t_i p_i), where the sum is the
    probability of factoring a product drawn from the target.

    Args:
        success: Probability p_i of writing correct factors after product i, shape (n,).
        target: Probability t_i of product i in the target distribution, shape (n,) (default: uniform).
    """
    success, target = _check_probabilities(success, target)
    return float((target * success).sum().sqrt())


@validated
def optimal_generator(success: Chances, target: Tensor | None = None) -> BestGenerator:
    """Choose how often a generator writes each product, such that its outputs come closest to the target.

    The generator writes a product of two primes, and then its factors, which are correct with probability p_i
    for product i. Closeness is the overlap, one minus the total variation distance. The products with the
    largest p_i receive the probability t_i / p_i each, until the sum is 1.

    Args:
        success: Probability p_i of writing correct factors after product i, shape (n,).
        target: Probability t_i of product i in the target distribution, shape (n,) (default: uniform).

    Returns:
        The overlap, and the probabilities of the products.
    """
    success, target = _check_probabilities(success, target)
    order = success.argsort(descending=True, stable=True)
    wanted = torch.where(success[order] > 0, target[order] / success[order], torch.inf)
    before = torch.cat((wanted.new_zeros(1), wanted.cumsum(0)[:-1]))
    spent = torch.minimum(wanted, (1 - before).clamp_min(0))
    # Probability on products that are never factored does not increase the overlap.
    spent[success[order] == 0] = 0
    first = torch.empty_like(spent)
    first[order] = spent
    reached = float((first * success).sum())
    first[0] += (1 - first.sum()).clamp_min(0)
    return BestGenerator(reached, first / first.sum())


@validated
def tightest_success(semiprimes: Count, factored: Count) -> Tensor:
    """Return probabilities of factoring each product of two primes, for which `overlap_bound` is attained.

    They are k/N for the first k of N products and 0 for the others.

    Args:
        semiprimes: Number N of products.
        factored: Number k of products that are factored with positive probability.

    Returns:
        Probabilities (N,) float64.

    Raises:
        InputError: If k exceeds N.
    """
    if factored > semiprimes:
        raise InputError("factored", factored, f"use from 1 to semiprimes={semiprimes}")
    success = torch.zeros(semiprimes, dtype=torch.float64)
    success[:factored] = factored / semiprimes
    return success


def semiprime_masses(tuples: SemiprimeTuples) -> dict[int, float]:
    """Return the probability of each product of two primes under the uniform distribution over tuples.

    It is 2/N for N tuples, or 1/N for squares.

    Args:
        tuples: Distribution over tuples of two primes and their product.

    Returns:
        Probability of each product, in ascending order.
    """
    counts = Counter(tuples.factors_last(numbers)[0] for numbers in tuples.decode(tuples.states()))
    return {product: count / tuples.size for product, count in sorted(counts.items())}


def best_generator_oracle(tuples: SemiprimeTuples, success: Mapping[int, float]) -> ListedDistribution:
    """Return the language model whose outputs [product, factor, factor] come closest to the uniform distribution.

    It writes product s with the probability from `optimal_generator`, and then the correct factors with
    probability `success[s]`, and zeros otherwise.

    Args:
        tuples: Target distribution over tuples that start with the product.
        success: Probability of writing correct factors after each product.

    Raises:
        InputError: If `tuples` do not start with the product, or `success` does not cover exactly its
            products.
    """
    if tuples.order != "product-first":
        raise InputError("order", tuples.order, "use product-first")
    masses = semiprime_masses(tuples)
    if not isinstance(success, Mapping) or set(success) != set(masses):
        raise InputError("success", success, f"give a probability for each of the {len(masses)} products")
    success = {product: check("success", success[product], Share) for product in masses}
    chances = torch.tensor(list(success.values()), dtype=torch.float64)
    first = optimal_generator(chances, torch.tensor(list(masses.values()), dtype=torch.float64)).first
    written = dict(zip(masses, first.tolist(), strict=True))
    rows = tuples.decode(tuples.states())
    right = [written[s] * success[s] / (masses[s] * tuples.size) for s, _, _ in rows]
    wrong = [written[s] * (1 - success[s]) for s in masses]
    sequences = tuples.encode([*rows, *((s, 0, 0) for s in masses)])
    return ListedDistribution(
        sequences, torch.tensor([*right, *wrong], dtype=torch.float64), tuples.vocab_size
    )


def _check_probabilities(success: Tensor, target: Tensor | None) -> tuple[Tensor, Tensor]:
    success = success.double()
    if target is None:
        return success, torch.full_like(success, 1 / len(success))
    return success, validate_probabilities("target", target, (len(success),), tolerance=_SUM)
