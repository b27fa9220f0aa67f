"""Tests of the study `topic-values`: arms, statistics and verdicts on known rows."""

from pathlib import Path

import numpy as np
import pytest
from known_rows import table

from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.claims.verdicts import Evidence, evaluate
from trialogue_lab.studies.topic_values import STUDY
from trialogue_lab.studies.topic_values.config import PRESETS
from trialogue_lab.studies.topic_values.measure import (
    ARMS,
    USUAL_WEIGHTS,
    WITH_ATTENTION,
    WITH_L2,
    WITHOUT_L2,
)
from trialogue_lab.studies.topic_values.statistics import prominence, standing

COUNT = 6


def rows(**changes: float) -> Rows:
    """Return rows with matrices of the published size."""
    seeds = np.arange(COUNT)
    entry = {"in_topic": 0.0055, "other": -0.0005, "other_std": 0.0006} | changes
    entry["in_topic"] = entry["in_topic"] * (1 + seeds / 1000)
    deviations = {USUAL_WEIGHTS: {"other_std": 0.02}}
    return Rows(
        [
            row
            for arm in ARMS
            for row in table("training", name=arm, seed=seeds, **entry | deviations.get(arm, {}))
        ]
    )


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    assert prominence(WITHOUT_L2)(rows())[0] == pytest.approx(11)
    # Five deviations are 0.003, ten times the mean elsewhere is 0.005.
    assert standing(WITHOUT_L2)(rows())[0] == pytest.approx(5.5 / 3)
    assert standing(WITHOUT_L2)(rows(other_std=0.002))[0] == pytest.approx(1.1)
    assert standing(WITHOUT_L2)(Rows([])).empty


@pytest.mark.parametrize(
    ("changes", "answer"),
    [({}, "holds"), ({"in_topic": 0.002}, "refuted"), ({"in_topic": -0.0055}, "undecided")],
)
def test_each_published_claim_can_fail(changes: dict[str, float], answer: str) -> None:
    published = [claim for claim in STUDY.claims if claim.origin == "published"]
    evidence = Evidence(rows=rows(**changes), config={"seeds": range(COUNT)}, preset="default")
    assert {verdict.answer for verdict in evaluate(published, evidence)} == {answer}


def test_differences_between_arms_have_the_expected_values(tmp_path: Path) -> None:
    trained = {
        row["name"]: row
        for row in STUDY.parts(PRESETS["smoke"])[0].rows(tmp_path)
        if row["kind"] == "training"
    }
    assert tuple(trained) == ARMS
    assert {row["optimizer"] for row in trained.values()} == {"sgd"}
    assert [trained[arm]["penalty"] > 0 for arm in ARMS] == [True, False, False, False]
    deviations = {arm: row["other_std"] for arm, row in trained.items()}
    assert max(deviations[arm] for arm in (WITH_L2, WITHOUT_L2, WITH_ATTENTION)) < 0.002
    assert 0.01 < deviations[USUAL_WEIGHTS] < 0.04
