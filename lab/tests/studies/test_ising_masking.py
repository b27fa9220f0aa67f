"""Errors of fitted Ising models against their exact limits, and the study end to end in miniature."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue_lab.ledger import Result, Rows, judged
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.studies.ising_masking import STUDY, measure
from trialogue_lab.studies.ising_masking.config import PRESETS, Config
from trialogue_lab.studies.ising_masking.measure import every_mask, exact_rows, measured_rows
from trialogue_lab.studies.ising_masking.statistics import (
    error_over_limit,
    gain,
    scaled_error,
    smallest_gain,
    within_trace,
)
from trialogue_lab.training.pseudolikelihood import PseudolikelihoodFit, fit_pseudolikelihood

SMOKE = PRESETS["smoke"]


@pytest.mark.parametrize(
    ("coupling", "pairs", "expected"),
    [
        (0.05, "unordered", (28.2609, 15.3355, 11.4463, 10.1116)),
        (0.3, "unordered", (43.7325, 23.4621, 17.8210, 16.3272)),
        (0.05, "ordered", (19.7265, 10.1277, 7.0704, 5.7299)),
        (0.3, "ordered", (121.7182, 58.9395, 40.4814, 37.0491)),
    ],
)
def test_exact_traces(coupling: float, pairs: str, expected: tuple[float, ...]) -> None:
    rows = [row for row in exact_rows(Config()) if row["kind"] == "exact" and row["coupling"] == coupling]
    one = [row["trace"] for row in rows if (row["pairs"], row["masks"]) == (pairs, "one")]
    assert one == pytest.approx(expected, abs=1e-4)
    if pairs == "unordered":
        every = [row["trace"] for row in rows if row["masks"] == "all"]
        assert every == pytest.approx([expected[-1]] * 4, abs=1e-2)


def test_the_control_scores_every_mask_of_every_sample() -> None:
    samples = torch.tensor([[0, 1, 0], [1, 1, 0]])
    repeated, masks = every_mask(samples, 2)
    assert repeated.tolist() == samples[[0, 0, 0, 1, 1, 1]].tolist()
    assert masks[:3].tolist() == [[True, True, False], [True, False, True], [False, True, True]]
    assert torch.equal(masks[:3], masks[3:])


def measured_ratios(masks: str = "one") -> list[float]:
    """n times the squared error over its exact limit, mean over training sets, for k = 1 to 4."""
    config = Config(couplings=(0.05,), sizes=(5000,), data_sets=25)
    limits = [
        row["trace"]
        for row in exact_rows(config)
        if row["kind"] == "exact" and (row["pairs"], row["masks"]) == ("unordered", masks)
    ]
    rows = [row for row in measured_rows(config, 0.05, 7) if row["masks"] == masks]
    return [5000 * row["squared_error"] / limit for row, limit in zip(rows, limits, strict=True)]


def as_predicted(ratios: list[float]) -> bool:
    """Each within 50 %: five standard errors of the mean of 25 training sets, whose errors have a CV of 0.5."""
    return all(abs(ratio - 1) < 0.5 for ratio in ratios)


def test_errors_follow_the_exact_limits() -> None:
    assert as_predicted(measured_ratios())


def _all_masks(samples: Tensor, **given: Any) -> PseudolikelihoodFit:
    samples, given["masks"] = every_mask(samples, given.pop("block_size"))
    return fit_pseudolikelihood(samples, **given)


def _half_the_samples(samples: Tensor, **given: Any) -> PseudolikelihoodFit:
    return fit_pseudolikelihood(samples[::2], **given)


def _ordered_pairs(samples: Tensor, **given: Any) -> PseudolikelihoodFit:
    fit = fit_pseudolikelihood(samples, **given)
    return dataclasses.replace(fit, model=Ising(fit.model.coupling / 2, fit.model.field))


@pytest.mark.parametrize("broken", [_all_masks, _half_the_samples, _ordered_pairs])
def test_a_broken_measurement_does_not(
    broken: Callable[..., PseudolikelihoodFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(samples: Tensor, **given: Any) -> PseudolikelihoodFit:
        return (broken if "block_size" in given else fit_pseudolikelihood)(samples, **given)

    monkeypatch.setattr(measure, "fit_pseudolikelihood", fit)
    assert not as_predicted(measured_ratios())


def test_samples_without_a_finite_estimate_count_as_infinite_errors() -> None:
    rows = list(measured_rows(Config(couplings=(3.0,), sizes=(5,), data_sets=2), 3.0, 0))
    assert {row["unbounded"] for row in rows} == {1.0}
    assert {row["squared_error"] for row in rows} == {math.inf}


def fitted(n: int, size: int, squared_error: float, within: float = 0.5) -> dict[str, Any]:
    common = {"kind": "fit", "seed": 3, "coupling": 0.3, "masks": "one"}
    return common | {"n": n, "block_size": size, "squared_error": squared_error, "within_trace": within}


def test_statistics_weigh_errors_by_the_size_of_the_training_set() -> None:
    limit = {
        "kind": "exact",
        "coupling": 0.3,
        "masks": "one",
        "pairs": "unordered",
        "block_size": 1,
        "trace": 20.0,
    }
    rows = Rows(
        [
            limit,
            *(fitted(300, size, error) for size, error in ((1, 0.08), (2, 0.07), (4, 0.07))),
            *(fitted(1000, size, error, 0.4) for size, error in ((1, 0.03), (2, 0.02), (4, 0.01))),
            *(fitted(10_000, size, error, 0.7) for size, error in ((1, 0.002), (2, 0.0016), (4, 0.0012))),
        ]
    )
    assert scaled_error(0.3, 1)(rows).to_dict() == pytest.approx({3: 25.0})
    assert error_over_limit(0.3, 1)(rows).to_dict() == pytest.approx({3: 1.25})
    assert gain(0.3, 1)(rows).to_dict() == pytest.approx({3: 7.0})
    # Small training sets count in it, and not in the means.
    assert smallest_gain(0.3)(rows).to_dict() == pytest.approx({3: 3.0})
    assert within_trace(0.3)(rows).to_dict() == pytest.approx({3: 0.55})
    assert gain(0.05, 1)(rows).empty


@pytest.fixture(scope="module")
def result(smoke_run: Callable[[str], Result]) -> Result:
    return smoke_run(STUDY.name)


def test_another_setting_leaves_the_claims_of_the_figures_without_a_number(tmp_path: Path) -> None:
    config = dataclasses.replace(SMOKE, couplings=(0.1,), sites=3, sizes=(300,), seeds=(0,))
    entry = judged(STUDY, execute(STUDY, config, tmp_path))
    estimates = {verdict.claim.id: verdict.replications for verdict in entry.verdicts}
    assert {number for name, number in estimates.items() if "-j0" in name} == {0}
    assert estimates["masking-more-is-no-worse"] == 1
    assert all(sheet(table, entry.rows).lines for table in STUDY.tables)


def test_a_repetition_does_not_depend_on_the_others(result: Result, tmp_path: Path) -> None:
    alone = execute(STUDY, dataclasses.replace(SMOKE, seeds=(1,)), tmp_path)
    first, second = (
        STUDY.rows(each)["fit"].query("seed == 1").squared_error.tolist() for each in (alone, result)
    )
    assert first == second


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sites", 1),
        ("sites", 7),
        ("couplings", ()),
        ("couplings", (0.3, 0.3)),
        ("couplings", (math.nan,)),
        ("field", math.inf),
        ("sizes", ()),
        ("sizes", (1000, 300)),
        ("data_sets", 1),
        ("seeds", ()),
        ("seeds", (1, 1)),
    ],
)
def test_a_field_out_of_range_is_named(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})
