"""Knapsack solvers against brute force, and constrained generation as one of them."""

from itertools import product

import pytest

from mutants.modules import altered
from one_line_errors import refusals
from trialogue.data import Dyck, Table
from trialogue.data.puzzles.hidden_string import ConstrainedTask, subset_sum_task
from trialogue.randomness import numpy_generator
from trialogue_lab.theory.query_complexity import (
    generated,
    knapsack_by_generating,
    knapsack_by_lattice,
    knapsack_by_table,
    knapsacks,
    superincreasing_knapsack,
)
from trialogue_lab.theory.query_complexity.knapsacks import density, is_superincreasing, solves


def feasible(weights, total) -> bool:
    return any(solves(bits, weights, total) for bits in product((0, 1), repeat=len(weights)))


def instances(superincreasing: bool = False):
    """Forty small knapsacks, with zeros and equal weights, and all totals up to beyond the sum."""
    coins = numpy_generator(0, "knapsacks", superincreasing)
    for _ in range(40):
        weights: list[int] = []
        for _ in range(int(coins.integers(1, 7))):
            weights.append(int(coins.integers(0, 7)) + (sum(weights) if superincreasing else 0))
        yield tuple(weights), range(sum(weights) + 3)


def is_right(solver, knapsacks_) -> bool:
    """A solution where there is one, FAIL where there is none."""
    for weights, totals in knapsacks_:
        for total in totals:
            bits = solver(weights, total)
            if (bits is not None) != feasible(weights, total):
                return False
            if bits is not None and not (len(bits) == len(weights) and solves(bits, weights, total)):
                return False
    return True


def test_solvers_are_right() -> None:
    assert is_right(knapsack_by_table, instances())
    assert is_right(superincreasing_knapsack, instances(superincreasing=True))
    few = [(weights, totals[:: 1 + len(totals) // 4]) for weights, totals in instances()][:12]
    assert is_right(knapsack_by_generating, few)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("knapsack_by_table", "taken = not before >> left & 1", "taken = left >= weight"),
        ("knapsack_by_table", "if weight <= total", "if weight < total"),
        ("superincreasing_knapsack", "for weight in reversed(weights):", "for weight in weights:"),
        ("superincreasing_knapsack", "None if left else", "None if left > 0 and left % 2 else"),
    ],
)
def test_broken_solvers_are_told_apart(name: str, old: str, new: str) -> None:
    solver = altered(knapsacks, (old, new), compiled=False)[name]
    assert not is_right(solver, instances(superincreasing=name == "superincreasing_knapsack"))


def large(size: int, digits: int, seed: int) -> tuple[tuple[int, ...], int]:
    """A knapsack of low density, and a total that has a solution."""
    coins = numpy_generator(seed, "dense", size, digits)
    weights = tuple(int.from_bytes(coins.bytes(digits // 8), "little") for _ in range(size))
    return weights, sum(weight for weight in weights if coins.random() < 0.5)


def solved_by(solver) -> int:
    found = 0
    for seed in range(6):
        weights, total = large(14, 64, seed)
        bits = solver(weights, total)
        found += bits is not None and solves(bits, weights, total)
    return found


def test_lattices_solve_what_has_a_low_density() -> None:
    assert density(large(14, 64, 0)[0]) < 0.25
    assert solved_by(knapsack_by_lattice) == 6
    assert knapsack_by_lattice((1, 2, 3), 3) in ((1, 1, 0), (0, 0, 1))
    assert knapsack_by_lattice((2, 4, 6), 3) is None


@pytest.mark.parametrize(
    ("old", "new"), [("int(end != sign)", "int(end == sign)"), ("row[-1] >> unseen", "row[-1] >> digits")]
)
def test_a_broken_reduction_is_told_apart(old: str, new: str) -> None:
    assert solved_by(altered(knapsacks, (old, new), compiled=False)["knapsack_by_lattice"]) < 6


def test_what_sympy_rounds_does_no_harm() -> None:
    """Its reduction of the whole basis at once fails here: quotients above 2^53 are rounded."""
    coins = numpy_generator(1, "y")
    weights = [int.from_bytes(coins.bytes(16), "little") for _ in range(16)]
    assert knapsack_by_lattice(weights, sum(weights[::2])) == (1, 0) * 8


def test_densities_and_superincreasing_weights() -> None:
    assert density((1, 1)) == float("inf")
    assert density((1, 2, 4, 16)) == 1
    assert is_superincreasing((1, 1, 2, 4))
    assert not is_superincreasing((1, 1, 1))


def test_the_reduction_takes_any_oracle_of_full_support() -> None:
    weights, total = (5, 3, 4, 1, 6), 9
    for chance in (0.1, 0.9):
        bits = knapsack_by_generating(weights, total, chance=chance, seed=3)
        assert bits is not None
        assert solves(bits, weights, total)
    # And back: who solves the knapsack, generates.
    solution = knapsack_by_table(weights, total)
    task = subset_sum_task(weights, total)
    assert solution is not None
    held = Table(lambda prefix: [1 - solution[len(prefix)], solution[len(prefix)]], 2, max_length=5)
    assert generated(task._replace(oracle=held)).output == solution


def test_a_perfect_verifier_needs_a_call_for_every_token_of_every_position() -> None:
    uniform = Table(lambda _: (0.25,) * 4, 4)
    for length in (2, 8, 32):
        found = generated(ConstrainedTask(uniform, Dyck(length), length))
        assert found.output is not None
        assert (found.verifier_calls, found.queries) == (4 * length, length)
    weights, total = (5, 3, 4, 1, 6), 9
    assert generated(subset_sum_task(weights, total)).verifier_calls == 10
    assert generated(subset_sum_task((2, 4), 3)) == (None, 2, 1)


test_bad_input_is_named = refusals(
    "^{}",
    [
        (lambda: knapsack_by_table((1, 2), 10**12), "total=1000000000000: the table would have"),
        (lambda: superincreasing_knapsack((1, 3, 2), 1), r"weights=\(1, 3, 2\): give every weight"),
        (lambda: subset_sum_task((1 << 62,), 1), "weights="),
    ],
)
