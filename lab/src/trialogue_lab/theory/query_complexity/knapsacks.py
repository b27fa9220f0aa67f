"""Knapsack problems (Definition 3.1.7 of the thesis), also solved by constrained generation (Theorem 3.1.2).

Given D weights X_i and a total c, find bits a_i with sum_i a_i X_i = c. Solvers return the bits, or None if they find
no solution. Section 3.5.1 lists easy cases:

- small totals, which a table solves;
- superincreasing weights, each at least the sum of the previous ones, which a greedy pass solves;
- weights of low density, which are few compared with their number of bits, and which lattice reduction solves.
"""

import math
from collections.abc import Sequence

from sympy import ZZ
from sympy.polys.matrices import DomainMatrix

from trialogue.data.puzzles.hidden_string import subset_sum_task, validate_weights
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.errors import InputError
from trialogue.validation import Natural, validated
from trialogue_lab.theory.query_complexity.trying_tokens import generate_by_trying

_MOST_CELLS = 1 << 33
_DIGITS = 16
"""Number of binary digits of the last column that each lattice reduction adds."""


@validated
def knapsack_by_table(weights: Sequence[int], total: Natural) -> Prefix | None:
    """Find a subset of weights with a given sum by dynamic programming.

    The table of all sums up to `total` has D (total + 1) cells for D weights.

    Args:
        weights: Integers of at least 0.
        total: Sum to reach.

    Returns:
        One bit per weight, 1 if it is in the subset, or None if there is no solution.

    Raises:
        InputError: If the table would have more than 2^33 cells.
    """
    weights = validate_weights(weights)
    cells = len(weights) * (total + 1)
    if cells > _MOST_CELLS:
        raise InputError("total", total, f"the table would have {cells} cells. Use a smaller total")
    # Bit s of a row of the table is set if the sum s can be reached.
    within = (1 << (total + 1)) - 1
    reached = [1]
    for weight in weights:
        shifted = reached[-1] << weight if weight <= total else 0
        reached.append((reached[-1] | shifted) & within)
    if not reached[-1] >> total & 1:
        return None
    bits, left = [], total
    for before, weight in zip(reversed(reached[:-1]), reversed(weights), strict=True):
        taken = not before >> left & 1
        left -= taken * weight
        bits.append(int(taken))
    return tuple(reversed(bits))


def is_superincreasing(weights: Sequence[int]) -> bool:
    """Return whether every weight is at least the sum of the previous ones (section 3.5.1)."""
    return all(weight >= sum(weights[:place]) for place, weight in enumerate(weights))


@validated
def superincreasing_knapsack(weights: Sequence[int], total: Natural) -> Prefix | None:
    """Find a subset of superincreasing weights with a given sum by a greedy pass.

    The pass goes from the last weight to the first.

    Args:
        weights: Integers of at least 0, each at least the sum of the previous ones.
        total: Sum to reach.

    Returns:
        One bit per weight, 1 if it is in the subset, or None if there is no solution.

    Raises:
        InputError: If the weights are not superincreasing.
    """
    weights, left = validate_weights(weights), total
    if not is_superincreasing(weights):
        raise InputError("weights", weights, "give every weight at least the sum of those before it")
    bits = []
    for weight in reversed(weights):
        bits.append(int(left >= weight))
        left -= bits[-1] * weight
    return None if left else tuple(reversed(bits))


def density(weights: Sequence[int]) -> float:
    """Return the density of a knapsack problem, D / log2(max X_i) for D weights X_i.

    It is infinite if no weight exceeds 1.
    """
    heaviest = max(validate_weights(weights))
    return len(weights) / math.log2(heaviest) if heaviest > 1 else math.inf


@validated
def knapsack_by_lattice(weights: Sequence[int], total: Natural) -> Prefix | None:
    """Find a subset of weights with a given sum by lattice reduction (Coster et al. 1992).

    The subset corresponds to a short vector of a lattice, which the reduction of Lenstra, Lenstra and Lovasz
    (1982) usually but not always finds. For almost all weights of density below 0.94, it is the shortest
    vector.

    Args:
        weights: Integers of at least 0.
        total: Sum to reach.

    Returns:
        One bit per weight, 1 if it is in the subset, or None. None does not prove that there is no solution.
    """
    weights = validate_weights(weights)
    size = len(weights)
    scale = math.isqrt(size + 1) + 1
    basis = [
        [*(2 * (column == row) for column in range(size)), 0, scale * weight]
        for row, weight in enumerate(weights)
    ]
    for *ends, sign, rest in _reduce_lattice([*basis, [*(1,) * size, 1, scale * total]]):
        if rest == 0 and {*ends, sign} <= {-1, 1}:
            return tuple(int(end != sign) for end in ends)
    return None


def _reduce_lattice(basis: list[list[int]]) -> list[list[int]]:
    """Apply LLL reduction to a lattice, with more and more digits of the last column."""
    digits = max(abs(row[-1]).bit_length() for row in basis)
    for unseen in range(digits // _DIGITS * _DIGITS, -1, -_DIGITS):
        seen = [[*row[:-1], row[-1] >> unseen] for row in basis]
        _, transform = DomainMatrix(seen, (len(seen), len(seen[0])), ZZ).lll_transform()
        integers = DomainMatrix(basis, (len(basis), len(basis[0])), ZZ)
        basis = [list(map(int, row)) for row in (transform * integers).to_list()]
    return basis


def solves(bits: Prefix, weights: Sequence[int], total: int) -> bool:
    """Return whether a subset of weights, selected by `bits`, has the sum `total`.

    Args:
        bits: One bit per weight, 1 if it is selected.
        weights: Weights.
        total: Required sum.
    """
    return sum(weight for bit, weight in zip(bits, weights, strict=True) if bit) == total


def knapsack_by_generating(
    weights: Sequence[int], total: int, *, chance: float = 0.5, seed: int = 0
) -> Prefix | None:
    """Find a subset of weights with a given sum by constrained generation (Theorem 3.1.2).

    The bits are generated from a next-token model that gives every string a positive probability. The constraint
    accepts strings whose selected weights sum to `total`.

    Args:
        weights: Integers of at least 0.
        total: Sum to reach.
        chance: Probability that the model generates a 1.
        seed: Seed of the generation.

    Returns:
        One bit per weight, 1 if it is in the subset, or None if the generation failed.
    """
    return generate_by_trying(subset_sum_task(weights, total, chance), seed=seed).output
