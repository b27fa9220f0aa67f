"""Tests of bounds on learning and of the gain of masking more in `mixing-and-learning`."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from trialogue.data import Ising
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.mixing_and_learning import measure, statistics
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, Config
from trialogue_lab.studies.mixing_and_learning.models import sample_family, sample_ising, sample_masks
from trialogue_lab.studies.mixing_and_learning.statistics import FEW
from trialogue_lab.theory.masking.block_laws import block_distribution
from trialogue_lab.theory.masking.covariance_bound import CovarianceBound, bound_covariance

SMALL = Config(sites=4, couplings=(0.4,), models=2, seeds=(0,))


def test_constants_and_traces_agree_with_published_values() -> None:
    model = Ising.clique(4, 4, coupling=0.3, field=0.0)
    found = [
        measure.compare_covariance(model, block_distribution(4, 2, block_size=size)) for size in (1, 2, 3, 4)
    ]
    traces = (43.7325, 23.4621, 17.8210, 16.3272)
    assert [bound["constant"] for bound in found] == pytest.approx((14.6987, 5.5516, 2.5172, 1), abs=1e-4)
    assert [bound["trace"] for bound in found] == pytest.approx(traces, abs=1e-4)


def test_the_chain_on_pairs_is_reducible() -> None:
    block_weights = sample_masks(4, 5, True, 0, 0)
    classes = sum(2 ** (4 - int(block.sum())) for block in block_weights.blocks)
    assert measure.count_closed_classes(sample_ising(4, 0.3, 0.3, 0, 0), block_weights) == classes


def theorems_hold(rows: list[dict[str, Any]]) -> bool:
    return all(row["slack"] > -1e-10 and row["information_slack"] > -1e-10 for row in rows)


def nearly_tight(rows: list[dict[str, Any]]) -> bool:
    """Return whether the bound is attained for k of at least N - 2, up to rounding."""
    return all(abs(row["tightness"] - 1) < 1e-9 for row in rows if row["law"] in {"k = 2", "k = 3", "k = 4"})


def measured() -> list[dict[str, Any]]:
    models = [sample_ising(4, 0.4, 0.3, 0, place) for place in range(2)]
    return list(measure.compare_bounds(SMALL, models, 0))


def test_the_theorems_hold_and_are_attained() -> None:
    rows = measured()
    assert {row["law"] for row in rows} == {"k = 1", "k = 2", "k = 3", "k = 4", WEIGHTED, ADAPTIVE}
    assert theorems_hold(rows)
    assert nearly_tight(rows)


def _larger_constant(*given: Any) -> CovarianceBound:
    bound = bound_covariance(*given)
    return bound._replace(constant=1.01 * bound.constant)


def test_a_larger_constant_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "bound_covariance", _larger_constant)
    rows = measured()
    assert not (theorems_hold(rows) and nearly_tight(rows))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_without_couplings_the_bound_is_an_equality(size: int) -> None:
    bound = measure.compare_covariance(
        sample_ising(4, 0.0, 0.3, 0, 0), block_distribution(4, 2, block_size=size)
    )
    assert bound["constant"] == pytest.approx(4 / size)
    assert bound["tightness"] == pytest.approx(1)


@pytest.mark.parametrize("families", [sample_ising, sample_family])
def test_masking_more_is_not_worse_but_not_strictly_better(families: Callable[..., Any]) -> None:
    ising = families is sample_ising
    models = [
        sample_ising(4, 0.4, 0.3, 0, place) if ising else sample_family(4, 0, place) for place in range(3)
    ]
    rows = list(measure.measure_gains(models))
    assert [row["masked"] for row in rows] == [1, 2, 3]
    assert all(row["smallest"] > -1e-10 and row["identity"] < 1e-12 for row in rows)
    assert all(row["trace_drop"] > 1e-6 for row in rows)
    if ising:
        assert rows[-1]["rank_most"] == 4
        assert abs(rows[-1]["smallest_most"]) < 1e-12


def test_models_with_the_same_index_share_random_numbers() -> None:
    weak, strong = (sample_ising(4, scale, 0.3, 5, 2) for scale in (0.1, 0.4))
    assert torch.allclose(4 * weak.coupling, strong.coupling)
    assert torch.equal(weak.field, strong.field)
    assert not torch.equal(weak.field, sample_ising(4, 0.1, 0.3, 5, 3).field)


def test_missing_mask_distributions_and_couplings_give_no_estimate() -> None:
    """Three sites have no k < N - 2, and one coupling gives no growth."""
    models = [sample_ising(3, 0.4, 0.3, 0, 0)]
    config = Config(sites=3, couplings=(0.4,), models=1, seeds=(0,))
    setting = {"kind": "bound", "seed": 0, "coupling": 0.4}
    rows = Rows([setting | row for row in measure.compare_bounds(config, models, 0)])
    assert len(statistics.typical("tightness", WEIGHTED)(rows)) == 1
    assert statistics.typical("tightness", FEW)(rows).empty
    assert statistics.growth("log_constant")(rows).empty
