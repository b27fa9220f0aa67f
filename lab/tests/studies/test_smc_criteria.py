"""Tests of the study `smc-criteria`: closed forms against enumeration, and known numbers of particles."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.smc_criteria import branches, products, trees
from trialogue_lab.studies.smc_criteria.branches import compute_branch_share, compute_first_leaf
from trialogue_lab.studies.smc_criteria.config import PRESETS, Config
from trialogue_lab.studies.smc_criteria.curves import (
    ANY,
    CONCAVE,
    compute_best_of_n_accuracy,
    compute_rejection_accuracy,
    make_random_curves,
)
from trialogue_lab.studies.smc_criteria.statistics import exponent
from trialogue_lab.studies.smc_criteria.trees import measure_library, measure_trees

SMOKE = PRESETS["smoke"]
RESIDUALS = ("products", "branches", "first_leaf", "best_of_n")


def one_too_many(compute: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Return a function that adds 1 to the positional argument at `place`."""
    return lambda *args: compute(*args[:place], args[place] + 1, *args[place + 1 :])


def test_closed_forms_agree_with_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = measure_library(SMOKE, 7, tmp_path)
    assert max(row[name] for name in RESIDUALS) < 1e-12
    for name, place in (
        ("compute_selected_share", 0),
        ("compute_branch_share", 0),
        ("compute_first_leaf", 0),
        ("compute_best_of_n_accuracy", 2),
    ):
        monkeypatch.setattr(trees, name, one_too_many(getattr(trees, name), place))
    (row,) = measure_library(SMOKE, 7, tmp_path)
    assert min(row[name] for name in RESIDUALS) > 1e-4


def test_the_needed_number_of_particles_is_the_least() -> None:
    needed = products.count_particles_needed(256, 0.5, 0.75, 0.1)
    near, far = (
        products.compute_variation(256, products.compute_selected_share(n, 0.5, 0.75), 0.75)
        for n in (needed, needed - 1)
    )
    assert near <= 0.1 < far
    for allowed in (0.7, 0.95):
        needed = products.count_particles_to_survive(64, allowed, 0.1)
        failures = [1 - (1 - (1 - allowed) ** n) ** 64 for n in (needed, needed - 1)]
        assert failures[0] <= 0.1 < failures[1]


def test_bellman_errors_need_more_particles() -> None:
    base, target, length = 0.6, 0.4, 16
    exact = abs(compute_branch_share(64, length, base, target, 0.0) - target)
    assert exact < 0.01 < 0.1 < abs(compute_branch_share(64, length, base, target, 0.1) - target)
    assert branches.count_particles_needed(length, base, target, 0.1, 0.1) > 64
    # With many particles, the last weights correct the errors.
    assert abs(compute_branch_share(2048, length, base, target, 0.1) - target) < 0.01
    share, moves = compute_first_leaf(length, target, 0.0)
    assert share == pytest.approx(target)
    assert moves == pytest.approx(length**2)


def test_perfect_values_need_a_square_root_of_the_length(tmp_path: Path) -> None:
    config = Config(seeds=(1, 2))
    rows = [
        {"seed": seed, **row}
        for seed in config.seeds
        for row in products.measure_products(config, seed, tmp_path)
    ]
    assert exponent()(Rows(rows)).tolist() == pytest.approx([0.49, 0.49], abs=0.03)
    assert exponent("zero or one")(Rows(rows)).max() < 0.25


def test_rejection_is_never_worse_on_concave_curves_only() -> None:
    for n in (2, 5, 16):
        gains = {
            kind: compute_rejection_accuracy(*table, n) - compute_best_of_n_accuracy(*table, n)
            for kind in (CONCAVE, ANY)
            for table in [make_random_curves(3, 200, 5, kind)]
        }
        assert gains[CONCAVE].min() > -1e-12
        assert (gains[ANY] < 0).mean() > 0.2
    mass, correct = np.array([[0.25, 0.75]]), np.array([[0.2, 0.3]])
    # The best of two has the high score with probability 1 - 0.75 ** 2.
    assert compute_best_of_n_accuracy(mass, correct, 2).item() == pytest.approx(0.4375 * 0.8 + 0.5625 * 0.4)
    assert compute_rejection_accuracy(mass, correct, 2).item() == pytest.approx(2 * (0.2 + 0.25 * 0.4))


def test_criteria_are_least_without_tilt_and_without_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row in measure_trees(SMOKE, 3, tmp_path):
        assert row["coverage"] >= 1
        assert row["chi_square"] >= 0
    monkeypatch.setattr(trees, "NoisyValues", lambda values, *_, **__: values)
    for row in measure_trees(SMOKE, 3, tmp_path):
        assert row["chi_square"] == pytest.approx(0, abs=1e-12)
        assert row["noisy"] == row["perfect"]
