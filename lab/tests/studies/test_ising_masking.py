"""Tests that errors of fitted Ising models agree with their exact limits in `ising-masking`."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from trialogue_lab.studies.ising_masking import measure
from trialogue_lab.studies.ising_masking.config import Config
from trialogue_lab.training.pseudolikelihood import PseudolikelihoodFit, fit_pseudolikelihood

EXACT = list(measure.measure_exact_errors(Config()))


@pytest.mark.parametrize(
    ("coupling", "pairs", "expected"),
    [
        (0.05, "unordered", (28.2609, 15.3355, 11.4463, 10.1116)),
        (0.3, "unordered", (43.7325, 23.4621, 17.8210, 16.3272)),
        (0.05, "ordered", (19.7265, 10.1277, 7.0704, 5.7299)),
        (0.3, "ordered", (121.7182, 58.9395, 40.4814, 37.0491)),
    ],
)
def test_exact_traces_have_known_values(coupling: float, pairs: str, expected: tuple[float, ...]) -> None:
    rows = [row for row in EXACT if row["kind"] == "exact" and row["coupling"] == coupling]
    one = [row["trace"] for row in rows if (row["pairs"], row["masks"]) == (pairs, "one")]
    assert one == pytest.approx(expected, abs=1e-4)
    if pairs == "unordered":
        every = [row["trace"] for row in rows if row["masks"] == "all"]
        assert every == pytest.approx([expected[-1]] * 4, abs=1e-2)


def test_the_control_scores_every_mask_of_every_sample() -> None:
    samples = torch.tensor([[0, 1, 0], [1, 1, 0]])
    repeated, masks = measure.apply_every_mask(samples, 2)
    assert repeated.tolist() == samples[[0, 0, 0, 1, 1, 1]].tolist()
    assert masks[:3].tolist() == [[True, True, False], [True, False, True], [False, True, True]]
    assert torch.equal(masks[:3], masks[3:])


def measured_ratios(masks: str = "one") -> list[float]:
    """Return n times the squared error over its exact limit, averaged over training sets, for k = 1 to 4."""
    config = Config(couplings=(0.05,), sizes=(5000,), data_sets=25)
    limits = [
        row["trace"]
        for row in measure.measure_exact_errors(config)
        if row["kind"] == "exact" and (row["pairs"], row["masks"]) == ("unordered", masks)
    ]
    rows = [row for row in measure.measure_fits(config, 0.05, 7) if row["masks"] == masks]
    return [5000 * row["squared_error"] / limit for row, limit in zip(rows, limits, strict=True)]


def agrees_with_limits(ratios: list[float]) -> bool:
    """Return whether ratios are within 50 %, five standard errors of the mean over 25 training sets."""
    return all(abs(ratio - 1) < 0.5 for ratio in ratios)


def test_errors_follow_the_exact_limits() -> None:
    assert agrees_with_limits(measured_ratios())


def test_half_the_samples_do_not_follow_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(samples: Tensor, **given: Any) -> PseudolikelihoodFit:
        return fit_pseudolikelihood(samples[::2] if "block_size" in given else samples, **given)

    monkeypatch.setattr(measure, "fit_pseudolikelihood", fit)
    assert not agrees_with_limits(measured_ratios())


def test_samples_without_a_finite_estimate_count_as_infinite_errors() -> None:
    rows = list(measure.measure_fits(Config(couplings=(3.0,), sizes=(5,), data_sets=2), 3.0, 0))
    assert {row["unbounded"] for row in rows} == {1.0}
    assert {row["squared_error"] for row in rows} == {math.inf}
