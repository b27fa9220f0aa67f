"""Tests that smoke rows of `topic-optima` agree with theory."""

import numpy as np
import pytest

from trialogue.data import BertMasking, TopicModel
from trialogue_lab.ledger import NoRows, Rows
from trialogue_lab.studies.topic_optima import STUDY
from trialogue_lab.studies.topic_optima.config import PRESETS
from trialogue_lab.studies.topic_optima.measure import compute_log_heights, compute_population
from trialogue_lab.studies.topic_optima.statistics import least_growth, minimum

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder = tmp_path_factory.mktemp("work")
    records = [dict(part.columns) | row for part in STUDY.parts(SMOKE) for row in part.measure(folder)]
    return Rows(records, "kind", {"seeds": SMOKE.seeds, "landscape": SMOKE.landscape})


def test_rows_agree_with_theory(rows: Rows) -> None:
    model = rows["model"].iloc[0]
    assert model.hessian_rank == model.topics
    assert max(model.formula_error, model.example, rows["member"].misfit.max()) < 1e-12
    assert rows["member"].z.max() < 4.5
    assert min(model.example_printed, model.with_all_topics_violation) > 0.01
    assert rows["minimum"].inside.min() > 0
    assert rows["gamma"].differ.max() < 1e-12
    assert least_growth("beta_low", "diagonal")(rows).item() > 0
    assert minimum("per_topic", 10)(rows).item() == pytest.approx(3.84, abs=0.01)
    lengths = rows.where("length", law="tau = 3")
    assert (lengths.loss <= lengths.loss_of_least_norm).all()


def test_edges_of_the_region_of_low_loss_have_the_expected_values(rows: Rows) -> None:
    region = rows.where("region", tau=20, values="block", variant="printed").iloc[0]
    # Along either axis the loss depends on gamma alone.
    assert region.beta_low / 300 == pytest.approx(region.alpha_low * 299 / 300, rel=1e-6)
    assert region.gamma_low == pytest.approx(region.beta_low / 300, rel=0.5)


def test_heights_are_relative_to_the_minimum() -> None:
    shown = compute_log_heights(np.array([[1.0, 1.1], [2.0, 1.0]]))
    assert shown.min() == -4
    assert shown.max() == 0


def test_a_growth_needs_two_landscapes(rows: Rows) -> None:
    single = [row for row in rows.records if row.get("tau") in (None, 20)]
    with pytest.raises(NoRows):
        least_growth("beta_low", "diagonal").compute(Rows(single))


def test_documents_have_the_measured_inputs() -> None:
    read, targets = compute_population(TopicModel(4, 2, 3), BertMasking())
    assert read.shape == targets.shape == (9, 4)
    assert float((read.sum(0) - 1).abs().max()) < 1e-14
    assert float(targets[0].abs().max()) == 0
