"""Tests of knapsack solvers against brute force, and of constrained generation as a knapsack solver."""

from itertools import product

from one_line_errors import refusals
from trialogue.data import Dyck, Table
from trialogue.data.puzzles.hidden_string import ConstrainedTask, subset_sum_task
from trialogue.randomness import numpy_generator
from trialogue_lab.theory.query_complexity import (
    generate_by_trying,
    knapsack_by_generating,
    knapsack_by_lattice,
    knapsack_by_table,
    superincreasing_knapsack,
)
from trialogue_lab.theory.query_complexity.knapsacks import density, is_superincreasing, solves


def feasible(weights, total) -> bool:
    return any(solves(bits, weights, total) for bits in product((0, 1), repeat=len(weights)))


def small_knapsacks(superincreasing: bool = False):
    """Yield forty small knapsacks, some with zeros or equal weights, and all totals up to the sum and beyond."""
    coins = numpy_generator(0, "knapsacks", superincreasing)
    for _ in range(40):
        weights: list[int] = []
        for _ in range(int(coins.integers(1, 7))):
            weights.append(int(coins.integers(0, 7)) + (sum(weights) if superincreasing else 0))
        yield tuple(weights), range(sum(weights) + 3)


def is_right(solver, knapsacks_) -> bool:
    """Return whether the solver returns a solution if there is one, and None otherwise."""
    for weights, totals in knapsacks_:
        for total in totals:
            bits = solver(weights, total)
            if (bits is not None) != feasible(weights, total):
                return False
            if bits is not None and not (len(bits) == len(weights) and solves(bits, weights, total)):
                return False
    return True


def test_solvers_agree_with_brute_force() -> None:
    assert is_right(knapsack_by_table, small_knapsacks())
    assert is_right(superincreasing_knapsack, small_knapsacks(superincreasing=True))
    subset = [(weights, totals[:: 1 + len(totals) // 4]) for weights, totals in small_knapsacks()][:12]
    assert is_right(knapsack_by_generating, subset)


def low_density_knapsack(size: int, digits: int, seed: int) -> tuple[tuple[int, ...], int]:
    """Return a knapsack of low density, and a total that has a solution."""
    coins = numpy_generator(seed, "dense", size, digits)
    weights = tuple(int.from_bytes(coins.bytes(digits // 8), "little") for _ in range(size))
    return weights, sum(weight for weight in weights if coins.random() < 0.5)


def count_solved(solver) -> int:
    found = 0
    for seed in range(6):
        weights, total = low_density_knapsack(14, 64, seed)
        bits = solver(weights, total)
        found += bits is not None and solves(bits, weights, total)
    return found


def test_lattice_reduction_solves_knapsacks_of_low_density() -> None:
    assert density(low_density_knapsack(14, 64, 0)[0]) < 0.25
    assert count_solved(knapsack_by_lattice) == 6
    assert knapsack_by_lattice((1, 2, 3), 3) in ((1, 1, 0), (0, 0, 1))
    assert knapsack_by_lattice((2, 4, 6), 3) is None


def test_lattice_reduction_is_exact_for_large_quotients() -> None:
    """The reduction of sympy for the whole basis rounds quotients above 2^53 and fails here."""
    coins = numpy_generator(1, "y")
    weights = [int.from_bytes(coins.bytes(16), "little") for _ in range(16)]
    assert knapsack_by_lattice(weights, sum(weights[::2])) == (1, 0) * 8


def test_density_and_superincreasing_weights_have_known_values() -> None:
    assert density((1, 1)) == float("inf")
    assert density((1, 2, 4, 16)) == 1
    assert is_superincreasing((1, 1, 2, 4))
    assert not is_superincreasing((1, 1, 1))


def test_reduction_works_for_any_oracle_of_full_support_and_back() -> None:
    weights, total = (5, 3, 4, 1, 6), 9
    for chance in (0.1, 0.9):
        bits = knapsack_by_generating(weights, total, chance=chance, seed=3)
        assert bits is not None
        assert solves(bits, weights, total)
    # Conversely, a solution of the knapsack defines an oracle that generates a valid output.
    solution = knapsack_by_table(weights, total)
    task = subset_sum_task(weights, total)
    assert solution is not None
    deterministic = Table(lambda prefix: [1 - solution[len(prefix)], solution[len(prefix)]], 2, max_length=5)
    assert generate_by_trying(task._replace(oracle=deterministic)).output == solution


def test_perfect_verifier_is_called_for_every_token_at_every_position() -> None:
    uniform = Table(lambda _: (0.25,) * 4, 4)
    for length in (2, 8, 32):
        found = generate_by_trying(ConstrainedTask(uniform, Dyck(length), length))
        assert found.output is not None
        assert (found.verifier_calls, found.queries) == (4 * length, length)
    weights, total = (5, 3, 4, 1, 6), 9
    assert generate_by_trying(subset_sum_task(weights, total)).verifier_calls == 10
    assert generate_by_trying(subset_sum_task((2, 4), 3)) == (None, 2, 1)


test_errors_name_the_invalid_argument = refusals(
    "^{}",
    [
        (lambda: knapsack_by_table((1, 2), 10**12), "total=1000000000000: the table would have"),
        (lambda: superincreasing_knapsack((1, 3, 2), 1), r"weights=\(1, 3, 2\): give every weight"),
        (lambda: subset_sum_task((1 << 62,), 1), "weights="),
    ],
)
