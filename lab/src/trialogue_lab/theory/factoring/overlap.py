"""Largest overlap of a generator with the uniform distribution on [pq, p, q] if it rarely factors.

A generator writes semiprime i first with probability a_i and then its factors with probability p_i. The
target has mass t_i: 1/N for each of the N tuples of the source, or m/N if m ordered pairs have this product.
The overlap is 1 - TV = sum_i min(a_i p_i, t_i). By min(u, v) <= sqrt(u v) and the Cauchy-Schwarz inequality,
it is at most sqrt(sum_i t_i p_i) for any a_i. This proof avoids the off-by-one error of the source. The
optimum is a fractional knapsack that fills the masses with the largest p_i first.

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
from trialogue.probabilities import checked_probabilities
from trialogue.validation import Count, Share, check, validated
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples

_SUM = 1e-9

Chances = Annotated[Tensor, Reals("semiprimes", least=0, most=1)]
"""One probability per semiprime."""


class Cheating(NamedTuple):
    """Probabilities `first` (n,) of writing each semiprime, and the largest `overlap`."""

    overlap: float
    first: Tensor


@validated
def overlap(success: Chances, first: Tensor, target: Tensor | None = None) -> float:
    """Return sum_i min(a_i p_i, t_i).

    Args:
        success: Probabilities p of factoring each semiprime, shape (n,).
        first: Distribution a of the semiprime written first.
        target: Distribution t (default: uniform).

    Raises:
        InputError: If these are not probabilities or distributions.
    """
    success, target = _checked(success, target)
    first = checked_probabilities("first", first, (len(success),), tolerance=_SUM)
    return float(torch.minimum(first * success, target).sum())


@validated
def overlap_bound(success: Chances, target: Tensor | None = None) -> float:
    """Return the bound sqrt(sum_i t_i p_i), the root of the chance of factoring a semiprime of the target."""
    success, target = _checked(success, target)
    return float((target * success).sum().sqrt())


@validated
def optimal_generator(success: Chances, target: Tensor | None = None) -> Cheating:
    """Return the largest overlap over all a.

    The semiprimes with the largest p_i receive t_i / p_i each, until the mass is used up. Remaining mass goes
    to the first semiprime, where it does not increase the overlap.
    """
    success, target = _checked(success, target)
    order = success.argsort(descending=True, stable=True)
    wanted = torch.where(success[order] > 0, target[order] / success[order], torch.inf)
    before = torch.cat((wanted.new_zeros(1), wanted.cumsum(0)[:-1]))
    spent = torch.minimum(wanted, (1 - before).clamp_min(0))
    # Mass on what is never factored reaches nothing.
    spent[success[order] == 0] = 0
    first = torch.empty_like(spent)
    first[order] = spent
    reached = float((first * success).sum())
    first[0] += (1 - first.sum()).clamp_min(0)
    return Cheating(reached, first / first.sum())


@validated
def tightest_success(semiprimes: Count, factored: Count) -> Tensor:
    """Return probabilities p (N,) that attain the bound sqrt(epsilon).

    They are k/N for k = `factored` semiprimes and 0 for the others.
    """
    if factored > semiprimes:
        raise InputError("factored", factored, f"use from 1 to semiprimes={semiprimes}")
    success = torch.zeros(semiprimes, dtype=torch.float64)
    success[:factored] = factored / semiprimes
    return success


def semiprime_masses(tuples: SemiprimeTuples) -> dict[int, float]:
    """Return the probability of each product under `tuples` in ascending order: 2/N, or 1/N for squares."""
    counts = Counter(tuples.factors_last(numbers)[0] for numbers in tuples.decode(tuples.states()))
    return {product: count / tuples.size for product, count in sorted(counts.items())}


def best_generator_oracle(tuples: SemiprimeTuples, success: Mapping[int, float]) -> ListedDistribution:
    """Return the optimal generator of tuples [pq, p, q] as an oracle.

    It factors product s with probability `success[s]` and otherwise writes zeros for the factors. Its overlap
    with `tuples` is the optimum of `optimal_generator`.

    Raises:
        InputError: If `tuples` do not start with the product, or `success` does not cover exactly its
            products.
    """
    if tuples.order != "product-first":
        raise InputError("order", tuples.order, "use product-first")
    masses = semiprime_masses(tuples)
    if not isinstance(success, Mapping) or set(success) != set(masses):
        raise InputError("success", success, f"give a chance for each of the {len(masses)} products")
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


def _checked(success: Tensor, target: Tensor | None) -> tuple[Tensor, Tensor]:
    success = success.double()
    if target is None:
        return success, torch.full_like(success, 1 / len(success))
    return success, checked_probabilities("target", target, (len(success),), tolerance=_SUM)
