"""Tests of rows of `gradient-flow`, and of wrong theories that they reject."""

import dataclasses

import pytest

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.gradient_flow import measure, statistics
from trialogue_lab.studies.gradient_flow.config import PRESETS
from trialogue_lab.theory import gradient_flow

SMOKE = PRESETS["smoke"]
COVARIANCE, WEIGHTS = measure.sample_gaussian(SMOKE.size, 3)


def test_flows_agree_with_gradients_and_gaussian_means() -> None:
    row = measure.compare_gradients(SMOKE, COVARIANCE, WEIGHTS, 3)
    assert row["sample_error"] < 1e-10
    assert row["gaussian_error"] < 1e-10
    assert row["z"] < 4


def test_without_a_first_layer_the_flow_has_the_closed_form() -> None:
    row = measure.compare_two_body_flow(SMOKE, COVARIANCE, WEIGHTS)
    assert row["first_most"] == 0
    assert row["last_moved"] > 0.1
    assert row["closed_error"] < 1e-6
    assert row["mean_error"] < 1e-10


def test_contribution_of_the_first_layer_has_the_expected_value() -> None:
    rows = [measure.compare_added_error(*measure.sample_gaussian(SMOKE.size, seed)) for seed in range(12)]
    assert max(row["error"] for row in rows) < 1e-10
    assert min(row["added"] for row in rows) > 0
    assert min(row["printed_error"] for row in rows) > 0.01
    assert min(row["printed"] for row in rows) < 0


def test_a_symmetric_first_layer_has_the_published_bound() -> None:
    first = WEIGHTS.first + WEIGHTS.first.T
    row = measure.compare_added_error(COVARIANCE, gradient_flow.Weights(WEIGHTS.last, first))
    assert row["printed_error"] < 1e-10


def test_only_weight_decay_removes_the_first_layer() -> None:
    rows = Rows([{"seed": 3, **row} for row in measure.measure_decay(SMOKE, COVARIANCE, WEIGHTS)])
    assert statistics.kept(decays=True)(rows).item() < 1e-3
    assert statistics.kept()(rows).item() > 0.05
    with_decay = rows.where("decay", decays=True)
    assert with_decay.last_error.item() < 1e-6
    assert with_decay.step.item() < 1
    assert len(rows["curve"]) == 2 * 31


def measured_growth() -> Rows:
    return Rows(
        [{"seed": 3, **row} for row in measure.measure_growth(*measure.sample_three_body_flow(SMOKE, 3))]
    )


def test_the_first_layer_grows_at_the_corrected_rate() -> None:
    rows = measured_growth()
    assert statistics.growth("error")(rows).item() < 1e-3
    assert statistics.growth("diagonal")(rows).item() == pytest.approx(2, abs=1e-3)
    assert statistics.growth("off_diagonal")(rows).item() > 0.01


def test_growth_in_the_example_depends_on_the_signs_of_skew_and_last_layer() -> None:
    """M is -skew diag(a), so that row k of the first layer grows at -2 skew a_k a_l, positive for unlike signs."""
    more = dataclasses.replace(SMOKE, draws=100_000)
    rows = Rows([{"seed": 3, **row} for row in measure.measure_example(more, 3)])
    sizes = measure._sample_normal(SMOKE.size, seed=3, name="example").abs().tolist()
    pairs = [2 * 2 * first * second for first in sizes for second in sizes]
    assert statistics.example(True, False)(rows).item() == pytest.approx(-min(pairs), abs=0.3)
    assert statistics.example(False, False)(rows).item() == pytest.approx(max(pairs), rel=0.1)
    assert statistics.example(True, True)(rows).item() > 0.1
    assert statistics.example(True, True, "printed_rate")(rows).item() < 0
