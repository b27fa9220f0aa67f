"""Tests of the bound on the overlap and of the strategy that attains it, against linear programming."""

import math

import pytest
import torch
from scipy.optimize import linprog

from one_line_errors import refusals
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.theory.factoring.overlap import (
    best_generator_oracle,
    optimal_generator,
    overlap,
    overlap_bound,
    semiprime_masses,
    tightest_success,
)
from uniform_rows import uniform_distribution


def random_success_probabilities(size: int, seed: int, power: float = 3.0) -> torch.Tensor:
    return torch.rand(size, dtype=torch.float64, generator=generator(seed, "success")) ** power


def solve_linear_program(success: torch.Tensor, target: torch.Tensor) -> float:
    """Maximise sum of z over a, z with z_i <= a_i p_i, z_i <= t_i and sum a = 1."""
    n = len(success)
    solved = linprog(
        [0.0] * n + [-1.0] * n,
        A_ub=[
            [-float(success[i]) * (j == i) for j in range(n)] + [float(j == i) for j in range(n)]
            for i in range(n)
        ],
        b_ub=[0.0] * n,
        A_eq=[[1.0] * n + [0.0] * n],
        b_eq=[1.0],
        bounds=[(0, 1)] * n + [(0, float(mass)) for mass in target],
    )
    return -float(solved.fun)


def is_optimal(solver) -> bool:
    for seed in range(25):
        success = random_success_probabilities(7, seed, 0.5 + seed % 4)
        success[seed % 7] = 0.0
        target = random_success_probabilities(7, seed + 100)
        target = target / target.sum()
        for distribution in (torch.full((7,), 1 / 7, dtype=torch.float64), target):
            found = solver(success, distribution)
            if abs(found.overlap - solve_linear_program(success, distribution)) > 1e-9:
                return False
            if abs(overlap(success, found.first, distribution) - found.overlap) > 1e-12:
                return False
    return True


def test_optimal_generator_attains_the_linear_programming_optimum() -> None:
    assert is_optimal(optimal_generator)


def test_a_strategy_that_ignores_the_masses_is_detected() -> None:
    assert not is_optimal(lambda success, target: optimal_generator(success))


def test_optimal_overlap_never_exceeds_the_bound_and_comes_close() -> None:
    """The largest ratio of overlap to bound is between 0.9 and 1."""
    largest = 0.0
    for seed in range(200):
        size = 2 + seed % 60
        success = random_success_probabilities(size, seed, 0.2 + seed % 11)
        bound = overlap_bound(success)
        best = optimal_generator(success).overlap
        assert best <= bound + 1e-12
        largest = max(largest, best / bound)
    assert 0.9 < largest <= 1 + 1e-12


@pytest.mark.parametrize("factored", [1, 50])
def test_tightest_success_probabilities_attain_the_bound(factored: int) -> None:
    success = tightest_success(100, factored)
    assert overlap_bound(success) == pytest.approx(factored / 100, abs=1e-14)
    assert optimal_generator(success).overlap == pytest.approx(factored / 100, abs=1e-14)


@pytest.mark.parametrize("digits", [1, 2])
def test_best_generator_oracle_has_the_optimal_overlap(digits: int) -> None:
    tuples = SemiprimeTuples(digits)
    masses = semiprime_masses(tuples)
    assert len(masses) == {1: 10, 2: 231}[digits]
    assert math.fsum(masses.values()) == pytest.approx(1)
    success = random_success_probabilities(len(masses), 4)
    target = torch.tensor(list(masses.values()), dtype=torch.float64)
    best = optimal_generator(success, target)
    assert best.overlap <= overlap_bound(success, target)
    oracle = best_generator_oracle(tuples, dict(zip(masses, success.tolist(), strict=True)))
    distribution = exact_distribution(Ancestral(), oracle).probabilities
    distance = total_variation(distribution, uniform_distribution(tuples.states()))
    assert 1 - distance == pytest.approx(best.overlap, abs=1e-12)


test_invalid_input_is_rejected = refusals(
    "{}",
    [
        (
            lambda: overlap(torch.ones(2), torch.tensor([0.5, 0.6])),
            r"^first=1\.1\d*: give non-negative probabilities that sum to one",
        ),
        (lambda: tightest_success(4, 5), r"^factored=5: use from 1 to semiprimes=4"),
        (lambda: best_generator_oracle(SemiprimeTuples(1, "factors-first"), {}), r"^order='factors-first'"),
        (
            lambda: best_generator_oracle(SemiprimeTuples(1), {4: 1.0}),
            r"^success=\{4: 1.0\}: give a probability for each of the 10",
        ),
    ],
)
