"""The study in miniature: rows say what theory says, and quantities reject rows that do not."""

from pathlib import Path

import pytest

from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.claims.verdicts import Evidence, evaluate
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.studies.memorization_construct import STUDY
from trialogue_lab.studies.memorization_construct.config import PRESETS
from trialogue_lab.studies.memorization_construct.statistics import (
    beyond_bound,
    held,
    least_slack,
    log_optimum_ratio,
    look_up_slack,
    rank_error,
    ridge_gain,
)

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    folder: Path = tmp_path_factory.mktemp("work")
    records = [dict(part.columns) | row for part in STUDY.parts(SMOKE) for row in part.measure(folder)]
    return Rows(records, "kind", {"seeds": SMOKE.seeds})


def test_rows_say_what_theory_says(rows):
    assert rank_error("mended")(rows).item() == rank_error("rank_one")(rows).item() == 0
    assert rank_error("printed", generic=True)(rows).item() == 0 < rank_error("printed")(rows).item()
    assert (held("error")(rows) < 1e-9).all()
    assert (held("excess", 0.0)(rows) < 1e-3).all()
    assert least_slack("loose")(rows).item() > least_slack("tight")(rows).item() > 0
    assert look_up_slack("simple")(rows).item() >= look_up_slack("bound")(rows).item() > 0
    assert (log_optimum_ratio()(rows) < -0.3).all()
    assert (ridge_gain()(rows) > 0).all()
    assert beyond_bound()(rows).abs().max() < 0.1


def test_rows_of_something_else_are_told_apart(rows):
    broken = [
        dict(record) | ({"measured": record["measured"] - 1} if record["kind"] == "rank" else {})
        for record in rows.records
    ]
    assert rank_error("mended")(Rows(broken, "kind", rows.config)).item() == 1
    broken = [
        dict(record) | ({"tight": record["tight"] / 1e3} if record["kind"] == "approximate" else {})
        for record in rows.records
    ]
    assert least_slack("tight")(Rows(broken, "kind", rows.config)).item() < 0


@pytest.mark.parametrize(("shift", "answer"), [(0.0, "holds"), (-0.03, "refuted")])
def test_a_construction_that_meets_the_bound_is_not_below_it(shift: float, answer: str):
    records = [
        {
            "kind": "association",
            "seed": seed,
            "stored": 12,
            "contexts": 100,
            "bound": 0.2,
            "accuracy": 0.2 + shift + (-1) ** seed * 0.004,
        }
        for seed in range(40)
    ]
    config = {"seeds": tuple(range(40))}
    claim = next(claim for claim in STUDY.claims if claim.id == "accuracy-is-not-below-the-bound")
    (verdict,) = evaluate([claim], Evidence(rows=Rows(records, "kind", config), config=config))
    assert verdict.answer == answer


def test_pages_are_drawn(rows):
    for figure in STUDY.figures:
        assert svg(figure, rows).count("<path") > 30
    for table in STUDY.tables:
        assert sheet(table, rows).lines
