"""Measurements of solvers of the knapsack problem: find a subset of given weights with a given sum."""

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np

from trialogue.data.puzzles.hidden_string import subset_sum_task
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.query_complexity.config import Config
from trialogue_lab.theory import query_complexity as theory
from trialogue_lab.theory.query_complexity.knapsacks import density, solves

Knapsack = tuple[tuple[int, ...], int]


def solve_random_knapsacks(count: int) -> MeasuredRows:
    """Solve random knapsacks with several solvers, and compare the results with brute force.

    Every second knapsack has a solution by construction. A result is wrong if it is FAIL although a solution exists, or
    if it is not a solution.

    Args:
        count: Number of knapsacks.

    Yields:
        One row per knapsack. `generated_wrong` is for constrained generation from a model that samples random bits, and
        `table_wrong` for dynamic programming. `calls` is the number of verifier calls.
    """
    rng = numpy_generator(0, "query-complexity", "knapsacks")
    for index in range(count):
        weights = tuple(rng.integers(0, 40, int(rng.integers(1, 11))).tolist())
        total = int(rng.integers(0, sum(weights) + 2))
        if index % 2:
            total = sum(weight for weight in weights if rng.random() < 0.5)
        chance = float(rng.uniform(0.1, 0.9))
        feasible = any(solves(bits, weights, total) for bits in product((0, 1), repeat=len(weights)))
        run = theory.generate_by_trying(subset_sum_task(weights, total, chance), seed=index)
        yield {
            "kind": "knapsack",
            "weights": len(weights),
            "feasible": feasible,
            "generated_wrong": _is_wrong(run.output, weights, total, feasible),
            "table_wrong": _is_wrong(theory.knapsack_by_table(weights, total), weights, total, feasible),
            "calls": run.verifier_calls,
            "bound": 2 * len(weights),
        }


def solve_superincreasing_knapsacks(count: int) -> MeasuredRows:
    """Solve knapsacks with superincreasing weights greedily, for all totals of each knapsack.

    Each weight is at least the sum of the previous ones. For one weight in four the two are equal, so that some totals
    have several solutions.

    Args:
        count: Number of knapsacks.

    Yields:
        One row for knapsacks whose subset sums are all different, and one for the others, with the numbers of
        knapsacks, totals and wrong results.
    """
    rng = numpy_generator(0, "query-complexity", "superincreasing")
    counts_by_uniqueness: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for _ in range(count):
        weights: list[int] = []
        for _ in range(int(rng.integers(1, 7))):
            weights.append(sum(weights) + int(rng.integers(0, 4)))
        sums = [
            sum(weight for bit, weight in zip(bits, weights, strict=True) if bit)
            for bits in product((0, 1), repeat=len(weights))
        ]
        reached, totals = set(sums), range(sum(weights) + 2)
        wrong = sum(
            _is_wrong(theory.superincreasing_knapsack(weights, total), weights, total, total in reached)
            for total in totals
        )
        counts_by_uniqueness[len(reached) == len(sums)].update(knapsacks=1, totals=len(totals), wrong=wrong)
    for unique, counts in counts_by_uniqueness.items():
        yield {"kind": "greedy", "unique": unique, **counts}


def solve_by_lattice_reduction(config: Config) -> MeasuredRows:
    """Solve random knapsacks that have a solution by lattice reduction.

    Args:
        config: Numbers of weights, digits and knapsacks, and seeds.

    Yields:
        One row per seed and number of binary digits. `density` is the mean of the number of weights divided by log2 of
        the largest weight, and `solved` is the number of solved knapsacks.
    """
    for seed in config.lattice_seeds:
        for digits in config.lattice_digits:
            knapsacks = [
                _make_solvable_knapsack(
                    config.lattice_size, digits, numpy_generator(seed, "lattice", digits, index)
                )
                for index in range(config.lattices)
            ]
            solved = [
                not _is_wrong(theory.knapsack_by_lattice(*each), *each, feasible=True) for each in knapsacks
            ]
            yield {
                "kind": "lattice",
                "seed": seed,
                "digits": digits,
                "size": config.lattice_size,
                "density": float(np.mean([density(weights) for weights, _ in knapsacks])),
                "solved": sum(solved),
                "trials": len(solved),
            }


def _make_solvable_knapsack(size: int, digits: int, rng: np.random.Generator) -> Knapsack:
    """Return random weights, and the sum of about half of them."""
    bits = rng.integers(0, 2, (size, digits)).tolist()
    weights = tuple(int("".join(map(str, row)), 2) for row in bits)
    return weights, sum(weight for weight in weights if rng.random() < 0.5)


def _is_wrong(bits: Prefix | None, weights: Sequence[int], total: int, feasible: bool) -> bool:
    if bits is None:
        return feasible
    return not solves(bits, weights, total)
