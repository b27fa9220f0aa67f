"""Test calibrations and thresholds against closed forms, with mutants that the same checks reject."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.training.probes.calibration import (
    Calibration,
    Floats,
    Labels,
    compute_verifier_metrics,
    fit_calibration,
    rejection_threshold,
    youden_threshold,
)
from trialogue.training.probes.probe_config import CalibrationMethod

Fit = Callable[[Floats, Labels, CalibrationMethod], Calibration]


def two_points() -> tuple[Floats, Labels]:
    """Return log-odds -1 with 10 of 40 examples correct, and log-odds 3 with 45 of 60 correct."""
    log_odds = np.repeat([-1.0, 3.0], [40, 60])
    labels = np.repeat([1, 0, 1, 0], [10, 30, 45, 15]).astype(np.int64)
    return log_odds, labels


def smoothed(labels: Labels) -> Floats:
    """Return the targets of Platt scaling."""
    correct = labels.sum()
    return np.where(labels == 1, (correct + 1) / (correct + 2), 1 / (len(labels) - correct + 2))


def platt_is_exact(fit: Fit) -> bool:
    """Check that two parameters fit two values exactly, with the log-odds of the mean target at each value."""
    log_odds, labels = two_points()
    target = smoothed(labels)
    low, high = (target[log_odds == value].mean() for value in (-1.0, 3.0))
    slope = (math.log(high / (1 - high)) - math.log(low / (1 - low))) / 4
    offset = math.log(low / (1 - low)) + slope
    return bool(np.allclose(fit(log_odds, labels, "platt"), (slope, offset), atol=1e-8))


def temperature_is_exact(fit: Fit) -> bool:
    """Check the slope, log-odds of the target / 2, for balanced log-odds ±2 with 3 of 4 labels in agreement."""
    log_odds = np.repeat([2.0, -2.0], 40)
    labels = np.tile([1, 1, 1, 0], 20).astype(np.int64)
    labels[40:] = 1 - labels[40:]
    share = smoothed(labels)[:40].mean()
    expected = (math.log(share / (1 - share)) / 2, 0.0)
    return bool(np.allclose(fit(log_odds, labels, "temperature"), expected, atol=1e-8))


def without_smoothing(log_odds: Floats, labels: Labels, method: CalibrationMethod) -> Calibration:
    """Mutant with so much data that the smoothing of Platt scaling is negligible."""
    repeated = np.tile(log_odds, 1000), np.tile(labels, 1000)
    return fit_calibration(*repeated, method)


@pytest.mark.parametrize("check", [platt_is_exact, temperature_is_exact])
def test_calibration_matches_closed_forms(check):
    assert check(fit_calibration)
    assert not check(without_smoothing)
    with pytest.raises(InputError, match="no better than chance"):
        check(lambda log_odds, labels, method: fit_calibration(log_odds, 1 - labels, method))


def test_separable_examples_have_a_finite_slope():
    log_odds, labels = np.array([-3.0, -2.0, 2.0, 3.0]), np.array([0, 0, 1, 1])
    slope, _ = fit_calibration(log_odds, labels, "platt")
    assert 0 < slope < 1
    constant = fit_calibration(np.array([1.0, 1.0, 1.0]), np.array([1, 1, 0]), "temperature")
    assert constant.slope > 0


@pytest.mark.parametrize("count", [19, 20, 99, 100, 437])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5])
def test_threshold_guarantee_is_exact(count, rate):
    """Check the mean rejection rate when each of n + 1 exchangeable values is left out in turn."""
    values = np.sort(numpy_generator(count, "values").random(count + 1))

    def share(threshold_of: Callable[[Floats], float]) -> float:
        rejected = [
            values[left_out] < threshold_of(np.delete(values, left_out)) for left_out in range(count + 1)
        ]
        return float(np.mean(rejected))

    def threshold_without(others: Floats) -> float:
        # Erroneous examples must not affect the threshold.
        labels = np.repeat([1, 0], [count, 3]).astype(np.int64)
        return rejection_threshold(np.append(others, [0.0, 0.5, 1.0]), labels, rate)

    rejected = math.floor(rate * (count + 1) + 1e-9)
    assert share(threshold_without) == rejected / (count + 1) <= rate + 1e-12
    # The next larger threshold violates the guarantee. A quantile without the + 1 can choose it.
    assert share(lambda others: float(np.sort(others)[rejected])) > rate


def test_metrics_match_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(20):
        draw = numpy_generator(seed, "scores")
        labels = np.append(draw.integers(0, 2, 60), [0, 1])
        probabilities = np.round(
            draw.random(62) * 0.6 + 0.4 * labels, int(draw.integers(1, 4))
        )  # ties, 0 and 1
        numbers = compute_verifier_metrics(probabilities, labels, 0.5, probabilities)
        assert numbers.auroc == pytest.approx(metrics.roc_auc_score(labels, probabilities), abs=1e-14)
        assert numbers.log_loss == pytest.approx(metrics.log_loss(labels, probabilities), rel=1e-13)
        assert numbers.brier == pytest.approx(metrics.brier_score_loss(labels, probabilities), rel=1e-13)
        false_accepts, accepts, thresholds = metrics.roc_curve(labels, probabilities)
        best = np.argmax(np.round(accepts - false_accepts, 12)[1:])
        assert youden_threshold(probabilities, labels) == thresholds[1:][best]


def test_metrics_match_a_hand_calculation():
    probabilities = np.array([0.1, 0.25, 0.6, 0.9, 0.9])
    labels = np.array([0, 1, 0, 1, 1])
    numbers = compute_verifier_metrics(probabilities, labels, 0.25, 1 - probabilities)
    assert (numbers.correct, numbers.erroneous) == (3, 2)
    assert numbers.accuracy == 3 / 5
    assert numbers.auroc == pytest.approx(5 / 6)
    assert numbers.brier == pytest.approx((0.01 + 0.5625 + 0.36 + 0.01 + 0.01) / 5)
    assert numbers.calibration_error == pytest.approx((0.1 + 0.75 + 0.6 + 0.2) / 5)
    assert numbers.calibration_error_before == pytest.approx((0.9 + 0.25 + 0.4 + 1.8) / 5)
    assert numbers.false_rejections[:2] == (0, 3)  # a value at the threshold is accepted
    assert numbers.detections[:2] == (1, 2)
    assert numbers.detections.low < 0.5 < numbers.detections.high
    assert numbers.detections.value == 0.5


def test_invalid_input_is_rejected():
    p, labels = np.array([0.2, 0.4, 0.6]), np.array([0, 1, 1])
    for labels_missing, word in (([0, 0, 0], "correct"), ([1, 1, 1], "erroneous")):
        expect_error(f"no {word} example", fit_calibration, p, np.array(labels_missing))
    expect_error(r"use at least 0\.3333", rejection_threshold, p, labels, 0.3)
