"""Calibration, rejection thresholds and held-out metrics of binary verifiers.

Labels are 1 for correct and 0 for erroneous examples. A verifier rejects an example if P(correct) is below its
threshold.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest, rankdata

from trialogue.arrays import integer_tensor, real_tensor
from trialogue.errors import InputError
from trialogue.training.probes.probe_config import CalibrationMethod
from trialogue.validation import Count, Finite, Probability, validated

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class Calibration(NamedTuple):
    """Rescaling of a classifier's log-odds to calibrated probabilities: `slope` * log_odds + `offset`.

    Attributes:
        slope: Factor of the log-odds, the inverse of the temperature.
        offset: Constant added to the scaled log-odds.
    """

    slope: float = 1.0
    offset: float = 0.0


@validated
def fit_calibration(log_odds: Floats, labels: Labels, method: CalibrationMethod = "platt") -> Calibration:
    """Fit the rescaling of log-odds that has the smallest log-loss.

    The labels are smoothed to (N₁ + 1)/(N₁ + 2) and 1/(N₀ + 2) for N₁ correct and N₀ erroneous examples
    (Platt 1999), so that the slope is finite for separable classes.

    Args:
        log_odds: Log-odds of being correct, (n,) float64.
        labels: Labels, (n,) int64.
        method: "platt" fits slope and offset (Platt 1999), "temperature" fits the slope alone (Guo et al.
            2017), and "none" returns the identity.

    Raises:
        InputError: If a class is missing, or if the fitted slope is not positive.
    """
    log_odds, labels = _examples("log_odds", log_odds, labels)
    correct = _both_classes(labels)
    if method == "none":
        return Calibration()
    target = np.where(labels == 1, (correct + 1) / (correct + 2), 1 / (len(labels) - correct + 2))
    columns = np.stack((log_odds, np.ones_like(log_odds)))[: 2 if method == "platt" else 1]

    def loss(parameters: Floats) -> float:
        scores = parameters @ columns
        return float(np.mean(np.logaddexp(0, scores) - target * scores))

    def gradient(parameters: Floats) -> Floats:
        slopes: Floats = columns @ (expit(parameters @ columns) - target) / len(labels)
        return slopes

    def hessian(parameters: Floats) -> Floats:
        p = expit(parameters @ columns)
        curvature: Floats = (columns * (p * (1 - p))) @ columns.T / len(labels)
        return curvature

    start = np.zeros(len(columns))
    # The loss is convex with at most two parameters, so trust-region Newton steps converge to machine precision.
    fitted = minimize(loss, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10})
    slope, offset = float(fitted.x[0]), float(fitted.x[1]) if method == "platt" else 0.0
    if not slope > 0:
        hint = "the verifier is no better than chance on held-out texts; use more texts or other layers"
        raise InputError("calibration slope", round(slope, 4), hint)
    return Calibration(slope, offset)


@validated
def rejection_threshold(probabilities: Floats, labels: Labels, false_rejections: Probability) -> float:
    """Return the largest threshold that rejects a correct prefix with probability at most `false_rejections`.

    It is the k-th smallest probability of the n correct examples, where k = ⌊false_rejections (n + 1)⌋ (split
    conformal prediction, Vovk et al. 2005). The guarantee holds on average over calibration sets of
    independent examples, and approximately with several examples per text.

    Args:
        probabilities: P(correct) of the calibration examples, (m,) float64.
        labels: Labels, (m,) int64.
        false_rejections: Maximum probability of rejecting a correct prefix.

    Raises:
        InputError: If there are too few correct examples for this rate.
    """
    probabilities, labels = _examples("probabilities", probabilities, labels)
    accepted = np.sort(probabilities[labels == 1])
    require_enough_correct(false_rejections, len(accepted))
    # A product that should be an integer can be slightly smaller because of rounding.
    return float(accepted[math.floor(false_rejections * (len(accepted) + 1) + 1e-9) - 1])


@validated
def require_enough_correct(false_rejections: Probability, correct: int) -> None:
    """Raise `InputError` if `correct` examples are too few to guarantee the rate `false_rejections`."""
    smallest_rate = 1 / (correct + 1)
    if false_rejections < smallest_rate - 1e-12:
        hint = f"with {correct} correct examples, use at least {smallest_rate:.4f}, or add more texts"
        raise InputError("false_rejections", false_rejections, hint)


def youden_threshold(probabilities: Floats, labels: Labels) -> float:
    """Return the threshold with the largest Youden's J.

    J is the fraction of erroneous examples rejected minus the fraction of correct examples rejected.

    Args:
        probabilities: P(correct) of the examples, (n,) float64.
        labels: Labels, (n,) int64.

    Raises:
        InputError: If a class is missing.
    """
    probabilities, labels = _examples("probabilities", probabilities, labels)
    _both_classes(labels)
    thresholds = np.unique(probabilities)[::-1]
    correct, erroneous = (np.sort(probabilities[labels == label]) for label in (1, 0))
    detected = np.searchsorted(erroneous, thresholds) / len(erroneous)
    rejected = np.searchsorted(correct, thresholds) / len(correct)
    return float(thresholds[np.argmax(detected - rejected)])


def area_under_curve(scores: Floats, labels: Labels) -> float:
    """Return the area under the ROC curve, with ties counted half.

    Args:
        scores: Scores of the examples, (n,) float64, larger for correct examples.
        labels: Labels of both classes, (n,) int64.
    """
    correct, total = int(labels.sum()), len(labels)
    above = rankdata(scores)[labels == 1].sum() - correct * (correct + 1) / 2
    return float(above / (correct * (total - correct)))


def log_loss(probabilities: Floats, labels: Labels) -> float:
    """Return the mean negative log-likelihood in nats, with probabilities clipped to [eps, 1 - eps].

    Args:
        probabilities: P(correct) of the examples, (n,).
        labels: Labels, (n,) int64.
    """
    rounding = np.finfo(probabilities.dtype).eps
    bounded = np.clip(probabilities, rounding, 1 - rounding)
    return float(-np.mean(np.where(labels == 1, np.log(bounded), np.log1p(-bounded))))


@validated
def expected_calibration_error(probabilities: Floats, labels: Labels, bins: Count = 10) -> float:
    """Return the expected calibration error over bins of equal width.

    The error is |mean probability - fraction of correct examples| per bin, weighted by the number of examples.

    Args:
        probabilities: P(correct) of the examples, (n,) float64.
        labels: Labels, (n,) int64.
        bins: Number of bins.
    """
    probabilities, labels = _examples("probabilities", probabilities, labels)
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(place, weights=probabilities - labels, minlength=bins)
    return float(np.abs(gaps).sum() / len(labels))


class Proportion(NamedTuple):
    """Observed proportion with a 95 % Wilson interval.

    Attributes:
        events: Number of events.
        total: Number of trials.
        low: Lower bound of the interval.
        high: Upper bound of the interval.
    """

    events: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """Observed proportion."""
        return self.events / self.total

    @classmethod
    def of(cls, happened: NDArray[np.bool_]) -> "Proportion":
        """Return the proportion of true entries in a non-empty bool array (n,), with its interval."""
        events, total = int(happened.sum()), len(happened)
        interval = binomtest(events, total).proportion_ci(0.95, method="wilson")
        return cls(events, total, float(interval.low), float(interval.high))


class VerifierMetrics(NamedTuple):
    """Accuracy, calibration and error rates of a verifier on held-out examples.

    Attributes:
        correct: Number of correct examples.
        erroneous: Number of erroneous examples.
        accuracy: Accuracy of the classifier P(correct) >= 1/2.
        auroc: Area under the ROC curve.
        log_loss: Mean negative log-likelihood in nats.
        brier: Brier score.
        calibration_error: Expected calibration error.
        calibration_error_before: Expected calibration error of the uncalibrated probabilities.
        false_rejections: Proportion of correct examples below the threshold.
        detections: Proportion of erroneous examples below the threshold.
    """

    correct: int
    erroneous: int
    accuracy: float
    auroc: float
    log_loss: float
    brier: float
    calibration_error: float
    calibration_error_before: float
    false_rejections: Proportion
    detections: Proportion


@validated
def compute_verifier_metrics(
    probabilities: Floats, labels: Labels, threshold: Finite, before: Floats
) -> VerifierMetrics:
    """Compute accuracy, calibration and error rates of a verifier on held-out examples.

    Args:
        probabilities: Calibrated P(correct) of the examples, (n,) float64.
        labels: Labels, (n,) int64.
        threshold: Rejection threshold of the verifier.
        before: Uncalibrated P(correct) of the examples, (n,) float64.

    Raises:
        InputError: If a class is missing.
    """
    probabilities, labels = _examples("probabilities", probabilities, labels)
    before = _examples("before", before, labels)[0]
    correct = _both_classes(labels)
    rejected = probabilities < threshold
    return VerifierMetrics(
        correct=correct,
        erroneous=len(labels) - correct,
        accuracy=float(np.mean((probabilities >= 0.5) == (labels == 1))),
        auroc=area_under_curve(probabilities, labels),
        log_loss=log_loss(probabilities, labels),
        brier=float(np.mean((probabilities - labels) ** 2)),
        calibration_error=expected_calibration_error(probabilities, labels),
        calibration_error_before=expected_calibration_error(before, labels),
        false_rejections=Proportion.of(rejected[labels == 1]),
        detections=Proportion.of(rejected[labels == 0]),
    )


def _examples(field: str, values: Floats, labels: Labels) -> tuple[Floats, Labels]:
    """Return `values` and `labels` as arrays (n,), or raise `InputError`."""
    hint = "give one finite number for each example"
    numbers, marks = (
        real_tensor(field, values, hint),
        integer_tensor("labels", labels, "give 0 or 1 for each example"),
    )
    if numbers.shape != (marks.numel(),) or not bool(numbers.isfinite().all()):
        raise InputError(field, tuple(numbers.shape), hint)
    if marks.ndim != 1 or bool(((marks != 0) & (marks != 1)).any()):
        raise InputError("labels", tuple(marks.shape), "give 0 or 1 for each example")
    return numbers.numpy(), marks.numpy()


def _both_classes(labels: Labels) -> int:
    """Return the number of correct labels, or raise `InputError` if a class is missing."""
    correct = int((labels == 1).sum())
    for label, count in (("erroneous", len(labels) - correct), ("correct", correct)):
        if not count:
            raise InputError("labels", 0, f"no {label} example is held out; add more {label} texts")
    return correct
