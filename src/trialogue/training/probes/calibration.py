"""Calibration of a binary verifier: probabilities that mean what they say, thresholds, and held-out numbers.

Labels are 1 for correct and 0 for erroneous; a verifier rejects where P(correct) lies below its threshold.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest, rankdata

from trialogue.arrays import real_tensor, whole_tensor
from trialogue.errors import InputError
from trialogue.training.probes.probe_config import CalibrationMethod
from trialogue.validation import Count, Finite, Probability, validated

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class Calibration(NamedTuple):
    """Calibrated log-odds are `slope` times the raw ones, plus `offset`; the temperature is 1 / slope."""

    slope: float = 1.0
    offset: float = 0.0


@validated
def fit_calibration(log_odds: Floats, labels: Labels, method: CalibrationMethod = "platt") -> Calibration:
    """The calibration of `log_odds` (n,) of being correct, with the least log-loss on `labels` (n,).

    "platt" fits slope and offset (Platt 1999), "temperature" the slope alone (Guo et al. 2017). Both use Platt's
    targets (N₁ + 1)/(N₁ + 2) and 1/(N₀ + 2), which keep the slope finite where the classes are separable. Raises
    `InputError` where a class is missing, or where larger log-odds do not mean more correct labels.
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
    # The loss is convex and has at most two parameters: Newton steps in a trust region end at machine precision.
    fitted = minimize(loss, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-10})
    slope, offset = float(fitted.x[0]), float(fitted.x[1]) if method == "platt" else 0.0
    if not slope > 0:
        hint = "the verifier is no better than chance on held-out texts: give more texts, or other layers"
        raise InputError("calibration slope", round(slope, 4), hint)
    return Calibration(slope, offset)


@validated
def rejection_threshold(probabilities: Floats, labels: Labels, false_rejections: Probability) -> float:
    """The largest threshold with which a new correct prefix is rejected with probability `false_rejections` at most.

    With n correct examples among `probabilities` (m,) it is the k-th smallest of theirs, k = ⌊rate (n + 1)⌋: the
    split-conformal quantile, whose promise holds on average over calibration sets drawn like the new prefix
    (Vovk et al. 2005). Several examples of one text are not independent: with them it holds in good approximation
    where texts are many. Raises `InputError` where n is too small for any threshold to keep the promise.
    """
    probabilities, labels = _examples("probabilities", probabilities, labels)
    accepted = np.sort(probabilities[labels == 1])
    check_false_rejections(false_rejections, len(accepted))
    # A rate such as 0.1 times 10 lies below 1 by rounding alone.
    return float(accepted[math.floor(false_rejections * (len(accepted) + 1) + 1e-9) - 1])


@validated
def check_false_rejections(false_rejections: Probability, correct: int) -> None:
    """Raise `InputError` unless `correct` correct examples can vouch for the rate `false_rejections`."""
    least = 1 / (correct + 1)
    if false_rejections < least - 1e-12:
        hint = f"{correct} correct examples calibrate it: use at least {least:.4f}, or give more texts"
        raise InputError("false_rejections", false_rejections, hint)


def youden_threshold(probabilities: Floats, labels: Labels) -> float:
    """The threshold that maximises Youden's J: share of errors rejected minus share of correct rejected."""
    probabilities, labels = _examples("probabilities", probabilities, labels)
    _both_classes(labels)
    thresholds = np.unique(probabilities)[::-1]
    correct, erroneous = (np.sort(probabilities[labels == label]) for label in (1, 0))
    detected = np.searchsorted(erroneous, thresholds) / len(erroneous)
    rejected = np.searchsorted(correct, thresholds) / len(correct)
    return float(thresholds[np.argmax(detected - rejected)])


def area_under_curve(scores: Floats, labels: Labels) -> float:
    """Return the area under the ROC curve: how often a correct example scores above an erroneous one, ties half."""
    correct, total = int(labels.sum()), len(labels)
    above = rankdata(scores)[labels == 1].sum() - correct * (correct + 1) / 2
    return float(above / (correct * (total - correct)))


def log_loss(probabilities: Floats, labels: Labels) -> float:
    """Return the mean negative log-likelihood in nats, with probabilities kept one rounding error from 0 and 1."""
    rounding = np.finfo(probabilities.dtype).eps
    bounded = np.clip(probabilities, rounding, 1 - rounding)
    return float(-np.mean(np.where(labels == 1, np.log(bounded), np.log1p(-bounded))))


@validated
def expected_calibration_error(probabilities: Floats, labels: Labels, bins: Count = 10) -> float:
    """|mean probability - share of correct|, averaged over `bins` equal intervals of P(correct) by their size."""
    probabilities, labels = _examples("probabilities", probabilities, labels)
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(place, weights=probabilities - labels, minlength=bins)
    return float(np.abs(gaps).sum() / len(labels))


class Proportion(NamedTuple):
    """`events` of `total`, and the 95 % Wilson interval of the share."""

    events: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself."""
        return self.events / self.total

    @classmethod
    def of(cls, happened: NDArray[np.bool_]) -> "Proportion":
        """The share of true among `happened` (n,), n > 0."""
        events, total = int(happened.sum()), len(happened)
        interval = binomtest(events, total).proportion_ci(0.95, method="wilson")
        return cls(events, total, float(interval.low), float(interval.high))


class VerifierNumbers(NamedTuple):
    """How good a verifier is on held-out examples."""

    correct: int
    erroneous: int
    accuracy: float  # of the verdict P(correct) >= 1/2
    auroc: float
    log_loss: float
    brier: float
    calibration_error: float
    calibration_error_before: float  # of the probabilities as they were before calibration
    false_rejections: Proportion  # correct examples below the threshold
    detections: Proportion  # erroneous examples below the threshold


@validated
def verifier_numbers(
    probabilities: Floats, labels: Labels, threshold: Finite, before: Floats
) -> VerifierNumbers:
    """Numbers of calibrated `probabilities` (n,) with a `threshold`; `before` (n,) are the uncalibrated ones."""
    probabilities, labels = _examples("probabilities", probabilities, labels)
    before = _examples("before", before, labels)[0]
    correct = _both_classes(labels)
    rejected = probabilities < threshold
    return VerifierNumbers(
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
    """Numbers (n,) of examples and their labels (n,), 0 or 1."""
    hint = "give one finite number for each example"
    numbers, marks = (
        real_tensor(field, values, hint),
        whole_tensor("labels", labels, "give 0 or 1 for each example"),
    )
    if numbers.shape != (marks.numel(),) or not bool(numbers.isfinite().all()):
        raise InputError(field, tuple(numbers.shape), hint)
    if marks.ndim != 1 or bool(((marks != 0) & (marks != 1)).any()):
        raise InputError("labels", tuple(marks.shape), "give 0 or 1 for each example")
    return numbers.numpy(), marks.numpy()


def _both_classes(labels: Labels) -> int:
    """The number of correct labels; raises `InputError` where all labels are equal."""
    correct = int((labels == 1).sum())
    for label, count in (("erroneous", len(labels) - correct), ("correct", correct)):
        if not count:
            raise InputError("labels", 0, f"no {label} example is held out: give more {label} texts")
    return correct
