"""The knapsack problem of Definition 3.1.7, and constrained generation as a way to solve it (Theorem 3.1.2).

Given weights X_i and a total c, find bits a_i with sum_i a_i X_i = c. Solvers return the bits, or None where there are
none: FAIL. Where it is easy (section 3.5.1): totals that are small numbers (a table), superincreasing weights (a greedy
pass), weights with so many digits that a short vector of a lattice tells the bits (low density).
"""

import math
from collections.abc import Sequence

from sympy import ZZ
from sympy.polys.matrices import DomainMatrix

from trialogue.data.puzzles.hidden_string import checked_weights, subset_sum_task
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.errors import InputError
from trialogue.validation import Natural, validated
from trialogue_lab.theory.query_complexity.trying_tokens import generated

_MOST_CELLS = 1 << 33
_DIGITS = 16
"""Binary digits that each step of a reduction adds."""


@validated
def knapsack_by_table(weights: Sequence[int], total: Natural) -> Prefix | None:
    """The dynamic program over which sums up to `total` the first weights reach: D (c + 1) cells, pseudo-polynomial.

    Raises `InputError` for weights or a total that are no whole numbers of at least 0, and for more than 2^33 cells.
    """
    weights = checked_weights(weights)
    cells = len(weights) * (total + 1)
    if cells > _MOST_CELLS:
        raise InputError("total", total, f"the table would have {cells} cells. Use a smaller total")
    # A row of the table is a number whose bit s says whether the sum s is reached.
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
    """Whether every weight is at least the sum of those before it, as section 3.5.1 has it."""
    return all(weight >= sum(weights[:place]) for place, weight in enumerate(weights))


@validated
def superincreasing_knapsack(weights: Sequence[int], total: Natural) -> Prefix | None:
    """The greedy pass, heaviest first, one comparison a weight: right where X_i >= sum_{j<i} X_j.

    Raises `InputError` for weights that are not superincreasing, or no whole numbers of at least 0, as `total` must be.
    """
    weights, left = checked_weights(weights), total
    if not is_superincreasing(weights):
        raise InputError("weights", weights, "give every weight at least the sum of those before it")
    bits = []
    for weight in reversed(weights):
        bits.append(int(left >= weight))
        left -= bits[-1] * weight
    return None if left else tuple(reversed(bits))


def density(weights: Sequence[int]) -> float:
    """D / log2(max X_i); infinite where no weight is above 1."""
    heaviest = max(checked_weights(weights))
    return len(weights) / math.log2(heaviest) if heaviest > 1 else math.inf


@validated
def knapsack_by_lattice(weights: Sequence[int], total: Natural) -> Prefix | None:
    """The bits, where they are read off a reduced basis of a lattice, as Coster et al. (1992) do; None proves nothing.

    Rows of the basis are (2 e_i, 0, n X_i) and (1, ..., 1, 1, n c) with n > sqrt(D + 1): bits a give the vector
    (2 a - 1, -1, 0), which is the shortest one for almost all weights of a density below 0.94. The basis is reduced by
    the algorithm of Lenstra, Lenstra and Lovasz (1982), which need not find it. Raises `InputError` for weights or a
    total that are no whole numbers of at least 0.
    """
    weights = checked_weights(weights)
    size = len(weights)
    scale = math.isqrt(size + 1) + 1
    basis = [
        [*(2 * (column == row) for column in range(size)), 0, scale * weight]
        for row, weight in enumerate(weights)
    ]
    for *ends, sign, rest in _reduced([*basis, [*(1,) * size, 1, scale * total]]):
        if rest == 0 and {*ends, sign} <= {-1, 1}:
            return tuple(int(end != sign) for end in ends)
    return None


def _reduced(basis: list[list[int]]) -> list[list[int]]:
    """`basis` reduced in steps that see ever more digits of the last column.

    sympy rounds quotients as floating point numbers: in each step they stay far below 2^53.
    """
    digits = max(abs(row[-1]).bit_length() for row in basis)
    for unseen in range(digits // _DIGITS * _DIGITS, -1, -_DIGITS):
        seen = [[*row[:-1], row[-1] >> unseen] for row in basis]
        _, transform = DomainMatrix(seen, (len(seen), len(seen[0])), ZZ).lll_transform()
        whole = DomainMatrix(basis, (len(basis), len(basis[0])), ZZ)
        basis = [list(map(int, row)) for row in (transform * whole).to_list()]
    return basis


def solves(bits: Prefix, weights: Sequence[int], total: int) -> bool:
    """Whether the `bits` pick weights of this `total`."""
    return sum(weight for bit, weight in zip(bits, weights, strict=True) if bit) == total


def knapsack_by_generating(
    weights: Sequence[int], total: int, *, chance: float = 0.5, seed: int = 0
) -> Prefix | None:
    """The reduction of Theorem 3.1.2: what is generated from an oracle of full support under A is a solution.

    The oracle draws each bit as 1 with `chance`. Raises `InputError` as `subset_sum_task` does.
    """
    return generated(subset_sum_task(weights, total, chance), seed=seed).output
