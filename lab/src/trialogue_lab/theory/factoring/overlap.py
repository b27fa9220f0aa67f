"""How much of the uniform law on [pq, p, q] a generator can reach that rarely knows the factors: sqrt(epsilon).

A generator writes semiprime i first with probability a_i and then its factors with probability p_i. Against a target
that gives semiprime i the mass t_i (1/N for each of the source's N, m/N where m ordered pairs have it as product) the
overlap is 1 - TV = sum_i min(a_i p_i, t_i). Whatever the a_i, it is at most sqrt(sum_i t_i p_i), by min(u, v) <=
sqrt(u v) and Cauchy-Schwarz: a proof without the off-by-one of the source's. Best is to fill the masses with the
largest p_i first, a fractional knapsack.

Source: "Theoretical Limitations of Autoregressive Models", appendix.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data.puzzles.weighted_prefixes import Listed
from trialogue.errors import InputError, probability
from trialogue.probabilities import checked_probabilities
from trialogue.validation import Count, validated
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples

_SUM = 1e-9

Chances = Annotated[Tensor, Reals("semiprimes", least=0, most=1)]
"""One probability for each semiprime."""


class Cheating(NamedTuple):
    """The best a generator can do: `first` (n,) is how often it writes each semiprime, `overlap` what it reaches."""

    overlap: float
    first: Tensor


@validated
def overlap(success: Chances, first: Tensor, target: Tensor | None = None) -> float:
    """sum_i min(a_i p_i, t_i) for p = `success`, a = `first`, t = `target` (n,), by default uniform.

    Raises `InputError` where these are not probabilities, or laws.
    """
    success, target = _checked(success, target)
    first = checked_probabilities("first", first, (len(success),), tolerance=_SUM)
    return float(torch.minimum(first * success, target).sum())


@validated
def overlap_bound(success: Chances, target: Tensor | None = None) -> float:
    """sqrt(sum_i t_i p_i): the square root of the chance epsilon to factor a semiprime of the target."""
    success, target = _checked(success, target)
    return float((target * success).sum().sqrt())


@validated
def optimal_cheating(success: Chances, target: Tensor | None = None) -> Cheating:
    """The largest overlap over all a: semiprimes of the largest p_i first, t_i / p_i each, until all mass is spent.

    What is left where every p_i > 0 is filled goes to the first semiprime, and gains nothing.
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
    """The chances p (N,) for which sqrt(epsilon) is attained: k/N for `factored` = k semiprimes, 0 for the others."""
    if factored > semiprimes:
        raise InputError("factored", factored, f"use from 1 to semiprimes={semiprimes}")
    success = torch.zeros(semiprimes, dtype=torch.float64)
    success[:factored] = factored / semiprimes
    return success


def semiprime_masses(tuples: SemiprimeTuples) -> dict[int, float]:
    """The mass of each product under the law of `tuples`, ascending: 2/N, or 1/N for squares."""
    counts = Counter(tuples.factors_last(numbers)[0] for numbers in tuples.decode(tuples.states()))
    return {product: count / tuples.size for product, count in sorted(counts.items())}


def cheating_generator(tuples: SemiprimeTuples, success: Mapping[int, float]) -> Listed:
    """The optimal generator as an oracle of tuples [pq, p, q]: it factors product s with probability `success[s]`.

    Where it fails it writes zeros for the factors. Its law has the overlap of `optimal_cheating` with that of
    `tuples`. Raises `InputError` where `tuples` do not begin with the product, or `success` names other products.
    """
    if tuples.order != "product-first":
        raise InputError("order", tuples.order, "use product-first")
    masses = semiprime_masses(tuples)
    if not isinstance(success, Mapping) or set(success) != set(masses):
        raise InputError("success", success, f"give a chance for each of the {len(masses)} products")
    success = {product: probability("success", success[product]) for product in masses}
    chances = torch.tensor(list(success.values()), dtype=torch.float64)
    first = optimal_cheating(chances, torch.tensor(list(masses.values()), dtype=torch.float64)).first
    written = dict(zip(masses, first.tolist(), strict=True))
    rows = tuples.decode(tuples.states())
    right = [written[s] * success[s] / (masses[s] * tuples.size) for s, _, _ in rows]
    wrong = [written[s] * (1 - success[s]) for s in masses]
    sequences = tuples.encode([*rows, *((s, 0, 0) for s in masses)])
    return Listed(sequences, torch.tensor([*right, *wrong], dtype=torch.float64), tuples.vocab_size)


def _checked(success: Tensor, target: Tensor | None) -> tuple[Tensor, Tensor]:
    success = success.double()
    if target is None:
        return success, torch.full_like(success, 1 / len(success))
    return success, checked_probabilities("target", target, (len(success),), tolerance=_SUM)
