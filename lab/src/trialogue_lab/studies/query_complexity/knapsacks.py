"""Knapsacks: by generating, by brute force and by a table; superincreasing ones; and those of low density."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from trialogue.data.puzzles.hidden_string import subset_sum_task
from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.randomness import numpy_generator
from trialogue_lab.studies.query_complexity.config import Config
from trialogue_lab.theory import query_complexity as theory
from trialogue_lab.theory.query_complexity.knapsacks import density, solves

Rows = Iterator[dict[str, Any]]
Knapsack = tuple[tuple[int, ...], int]


def random_rows(count: int) -> Rows:
    """Random knapsacks, every other one with a total that some of its weights reach, and who is right about each.

    The generator's oracle draws ones with a chance of its own. Wrong is what differs from brute force: FAIL where there
    is a solution, and anything else where there is none.
    """
    coins = numpy_generator(0, "query-complexity", "knapsacks")
    for place in range(count):
        weights = tuple(coins.integers(0, 40, int(coins.integers(1, 11))).tolist())
        total = int(coins.integers(0, sum(weights) + 2))
        if place % 2:
            total = sum(weight for weight in weights if coins.random() < 0.5)
        chance = float(coins.uniform(0.1, 0.9))
        feasible = any(solves(bits, weights, total) for bits in product((0, 1), repeat=len(weights)))
        run = theory.generated(subset_sum_task(weights, total, chance), seed=place)
        yield {
            "kind": "knapsack",
            "weights": len(weights),
            "feasible": feasible,
            "generated_wrong": _wrong(run.output, weights, total, feasible),
            "table_wrong": _wrong(theory.knapsack_by_table(weights, total), weights, total, feasible),
            "calls": run.verifier_calls,
            "bound": 2 * len(weights),
        }


def greedy_rows(count: int) -> Rows:
    """Superincreasing knapsacks, a quarter of their weights the very sum of those before, and every total of each."""
    coins = numpy_generator(0, "query-complexity", "superincreasing")
    tried: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for _ in range(count):
        weights: list[int] = []
        for _ in range(int(coins.integers(1, 7))):
            weights.append(sum(weights) + int(coins.integers(0, 4)))
        sums = [
            sum(weight for bit, weight in zip(bits, weights, strict=True) if bit)
            for bits in product((0, 1), repeat=len(weights))
        ]
        reached, totals = set(sums), range(sum(weights) + 2)
        wrong = sum(
            _wrong(theory.superincreasing_knapsack(weights, total), weights, total, total in reached)
            for total in totals
        )
        tried[len(reached) == len(sums)].update(knapsacks=1, totals=len(totals), wrong=wrong)
    for unique, counts in tried.items():
        yield {"kind": "greedy", "unique": unique, **counts}


def lattice_rows(config: Config) -> Rows:
    """Shares of knapsacks with a solution that lattices solve, by the binary digits of their weights."""
    for seed in config.lattice_seeds:
        for digits in config.lattice_digits:
            drawn = [
                _with_solution(config.lattice_size, digits, numpy_generator(seed, "lattice", digits, place))
                for place in range(config.lattices)
            ]
            solved = [not _wrong(theory.knapsack_by_lattice(*each), *each, feasible=True) for each in drawn]
            yield {
                "kind": "lattice",
                "seed": seed,
                "digits": digits,
                "size": config.lattice_size,
                "density": float(np.mean([density(weights) for weights, _ in drawn])),
                "solved": sum(solved),
                "trials": len(solved),
            }


def _with_solution(size: int, digits: int, coins: np.random.Generator) -> Knapsack:
    """Weights of so many binary digits, and the sum of about half of them."""
    bits = coins.integers(0, 2, (size, digits)).tolist()
    weights = tuple(int("".join(map(str, row)), 2) for row in bits)
    return weights, sum(weight for weight in weights if coins.random() < 0.5)


def _wrong(bits: Prefix | None, weights: Sequence[int], total: int, feasible: bool) -> bool:
    if bits is None:
        return feasible
    return not solves(bits, weights, total)
