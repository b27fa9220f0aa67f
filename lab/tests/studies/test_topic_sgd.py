"""Tests of the study `topic-sgd`: scaled weights and rates, statistics, and verdicts on known rows."""

import math
from pathlib import Path

import numpy as np
import pytest
from known_rows import table

from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.claims.verdicts import Evidence, evaluate
from trialogue_lab.studies.topic_sgd import STUDY
from trialogue_lab.studies.topic_sgd.config import PRESETS, Config
from trialogue_lab.studies.topic_sgd.measure import VALUES_ALONE, arm_with_attention
from trialogue_lab.studies.topic_sgd.statistics import fall, over

ARMS = (VALUES_ALONE, arm_with_attention(0.01), arm_with_attention(0.03))
SIZES = {"topics": 10, "words_per_topic": 10, "seeds": range(6)}


def rows(**changes: float) -> Rows:
    """Return rows in which all claims hold, with slightly different numbers for each seed."""
    seeds = np.arange(6)
    numbers = {"in_topic": 1.2, "other": 0.1, "other_std": 0.1, "test": 3.5}
    weights = {"same_word": 0.014, "same_topic": 0.0103, "other": 0.0064}
    numbers |= {f"attention_{kind}": weight for kind, weight in weights.items()} | changes
    for slope, name in enumerate(("in_topic", "attention_same_word", "attention_same_topic"), start=1):
        numbers[name] = numbers[name] * (1 + slope * seeds / 1000)
    return Rows(
        [row for arm in ARMS for row in table("training", name=arm, seed=seeds, **numbers)], config=SIZES
    )


def answers(found: Rows) -> list[str]:
    """Return the verdicts on all claims."""
    evidence = Evidence(rows=found, config=SIZES, preset="default")
    return [verdict.answer for verdict in evaluate(STUDY.claims, evidence)]


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    assert over(ARMS[1], "same_word", "other")(rows())[0] == pytest.approx(math.log(140 / 64))
    assert fall(ARMS[1])(rows())[0] == pytest.approx(math.log(100) - 3.5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["holds"] * 5),
        ({"attention_same_topic": 0.005}, ["refuted", "refuted", "holds", "holds", "holds"]),
        ({"attention_same_word": 0.009}, ["holds", "holds", "refuted", "holds", "holds"]),
        ({"in_topic": 0.4}, ["holds", "holds", "holds", "refuted", "refuted"]),
        ({"test": 4.55}, ["not tested"] * 5),
    ],
)
def test_each_claim_can_fail(changes: dict[str, float], expected: list[str]) -> None:
    assert answers(rows(**changes)) == expected


def test_weights_and_rates_are_those_of_scaled_inputs(tmp_path: Path) -> None:
    trained = {row["name"]: row for row in STUDY.parts(PRESETS["smoke"])[0].rows(tmp_path)}
    assert tuple(trained) == ARMS
    assert [row["printed_rate"] for row in trained.values()] == [0.01, 0.01, 0.03]
    assert [row["rate"] for row in trained.values()] == pytest.approx([1.03, 1.03, 3.09])
    assert {(row["optimizer"], row["loss"]) for row in trained.values()} == {("sgd", "CE")}
    # Ten steps hardly change the initial weights, whose standard deviation is 0.02 times the scale of the inputs.
    assert 0.15 < trained[VALUES_ALONE]["other_std"] < 0.26


def test_a_layer_norm_of_a_one_hot_input_has_this_scale() -> None:
    config = Config()
    one_hot = np.eye(config.entries)[0]
    normalized = (one_hot - one_hot.mean()) / one_hot.std()
    assert normalized[0] == pytest.approx(config.input_scale)
    assert config.steps == 20 * config.documents // config.batch_size
