"""Tests of constants and bounds of `joint-from-conditionals`, and of wrong measurements that its rows reject."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.claims.extremes import largest, smallest
from trialogue_lab.studies.joint_from_conditionals import clique_family, measure
from trialogue_lab.studies.joint_from_conditionals.clique_family import CliqueFamily
from trialogue_lab.studies.joint_from_conditionals.config import PRESETS
from trialogue_lab.theory.masking.block_laws import block_distribution, conditionals

SMOKE = PRESETS["smoke"]
FAMILY = CliqueFamily(3, (0.0, 0.1), (0.8, 1.2))


def data(samples: int = 10**5, masks: int = 10**3) -> Any:
    return FAMILY.draw(0.05, 1.0, samples, masks, numpy_generator(3, "data"))


def test_losses_agree_with_the_conditionals() -> None:
    theta = np.array([0.07, 0.9])
    expected = conditionals(FAMILY.probabilities(0.07, 0.9), FAMILY.blocks)
    assert torch.allclose(torch.from_numpy(np.exp(-FAMILY.losses(theta))), expected)


def test_a_fit_minimizes_the_stated_loss() -> None:
    counts = data()
    fitted = FAMILY.fit(counts)
    assert fitted == pytest.approx([0.05, 1.0], abs=0.03)
    best = FAMILY.empirical_loss(counts, fitted)
    for change in product((-1e-3, 0, 1e-3), repeat=2):
        assert FAMILY.empirical_loss(counts, fitted + change) >= best - 1e-12
    assert FAMILY.conditional_entropy(counts) < best


def constants_are_certain(family: CliqueFamily, eps: float) -> bool:
    """Check on a grid that conditionals are at least beta, and vary by at most eps / 2 within a cell."""
    grid = [np.linspace(*bounds, 25) for bounds in (family.couplings, family.fields)]
    losses = np.array([[family.losses(np.array((j, h))) for h in grid[1]] for j in grid[0]])
    if losses.max() > -math.log(family.beta) + 1e-12:
        return False
    # There must be at least one cell for each eps / 2 of the range of the log-probabilities.
    return family.cells(eps) >= np.ptp(losses, axis=(0, 1)).max() / (eps / 2)


def test_constants_are_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert constants_are_certain(FAMILY, 0.05)
    monkeypatch.setattr(CliqueFamily, "cells", lambda *_: 3)
    assert not constants_are_certain(FAMILY, 0.05)
    monkeypatch.undo()
    monkeypatch.setattr(clique_family, "smallest_conditional", lambda *_: 0.4)
    assert not constants_are_certain(FAMILY, 0.05)


def test_the_bound_holds_and_is_below_one() -> None:
    for place, sizes in enumerate(SMOKE.sizes):
        row = measure.compare_bounds(SMOKE, sizes, 0, place)
        assert row["stated_bound_most"] < 1
        assert row["proved_bound"] < row["stated_bound"]
        for name in ("stated", "proved", "average", "lemma", "empirical"):
            assert row[f"{name}_within"] == 1


def test_wrong_fits_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tightest bound rejects a fit far from the data. The bound of the theorem is too loose to reject it."""
    monkeypatch.setattr(measure.sample_bound, "empirical_distribution_bound", lambda **_: 1e-4)
    row = measure.compare_bounds(SMOKE, SMOKE.sizes[0], 0, 0)
    assert row["empirical_within"] < 1


def test_decay_bounds_hold_and_twice_the_rate_does_not() -> None:
    draws = numpy_generator(0, "decay")
    model = measure.sample_model(3, 0.5, draws)
    rows = [
        row
        for size in (1, 2, 3)
        for row in measure.measure_decay(SMOKE, model, block_distribution(3, 2, block_size=size), draws)
    ]
    assert max(row["chi_square"] for row in rows) < 1e-6
    assert max(row["entropy"] for row in rows) < 1e-6
    slow = Rows(list(measure.measure_slow_decay(SMOKE)))
    assert largest("slow", "log_ratio + time")(slow).item() < 1e-6
    assert largest("slow", "log_ratio + 2 * time")(slow).item() > 1
    near = slow["slow"].query("rare == 1e-4 and time == 1").log_ratio.item()
    assert near == pytest.approx(math.log(2.731 / -math.log(1e-4)), abs=1e-2)


def test_loss_is_convex_but_its_square_root_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def smallest_eigenvalue() -> float:
        rows = [
            measure.measure_convexity(SMOKE, numpy_generator(0, "convexity", place)) for place in range(3)
        ]
        return smallest("convexity", "smallest")(Rows([{"kind": "convexity", **row} for row in rows])).item()

    assert smallest_eigenvalue() > -1e-12
    exact_loss = measure.pseudolikelihood_loss

    def square_root_loss(data: torch.Tensor, log_weights: torch.Tensor, block_weights: Any) -> torch.Tensor:
        return exact_loss(data, log_weights, block_weights).sqrt()

    monkeypatch.setattr(measure, "pseudolikelihood_loss", square_root_loss)
    assert smallest_eigenvalue() < -1e-6
