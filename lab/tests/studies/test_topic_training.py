"""Tests of small trainings of `topic-training`, and of statistics of known rows."""

from typing import Any

import pytest
import torch
from known_rows import table

from trialogue.data import TopicModel
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.topic_training import measure, statistics
from trialogue_lab.studies.topic_training.config import PRESETS, SETTINGS
from trialogue_lab.studies.topic_training.matrices import compute_entry_means
from trialogue_lab.studies.topic_training.statistics import (
    contrast,
    gap,
    over,
    progress,
    prominence,
    standing,
)

SMOKE = PRESETS["smoke"]


def test_mean_entries_are_computed_by_class_of_words() -> None:
    matrix = torch.zeros(5, 5)
    matrix[1:, 1:] = torch.tensor([[3.0, 1, 0, 0], [1, 3, 0, 0], [0, 0, 3, 1], [0, 0, 1, 3]])
    matrix[0] = matrix[:, 0] = 9
    found = compute_entry_means(matrix, TopicModel(2, 2, 1))
    assert found == {"diagonal": 3, "block": 1, "in_topic": 2, "other": 0, "other_std": 0}


def test_a_training_that_diverges_is_counted() -> None:
    run = measure.TopicTraining("values", "wild", "squared", "sgd", 1e9, 20, network=measure.VALUES_ONLY)
    _, row = measure.train_network(SMOKE, run, 0)
    assert row["failed"]
    assert row["test"] is None


def test_trainings_of_a_seed_share_documents_and_are_repeated() -> None:
    assert measure.sample_documents(SMOKE, 0) is measure.sample_documents(SMOKE, 0)
    run = measure.TopicTraining("attention", "with values", "CE", "adam", 0.01, 10, network=measure.ONE_HOT)
    assert measure.train_network(SMOKE, run, 0)[1] == measure.train_network(SMOKE, run, 0)[1]
    assert measure.train_network(SMOKE, run, 0)[1]["test"] != measure.train_network(SMOKE, run, 10)[1]["test"]


def training_row(name: str, **values: Any) -> dict[str, Any]:
    labels = {"kind": "training", "seed": 1, "name": name, "loss": "CE", "optimizer": "adam", "rate": 0.01}
    return labels | {"test": 3.6} | values


MATRIX = {"kind": "matrix", "seed": 1} | {f"word_{word}": 0.0 for word in range(100)}


def test_statistics_of_known_matrices_have_the_expected_values() -> None:
    rows = Rows(
        [
            MATRIX,
            training_row("all", block=0.5, other=0.1, other_std=0.2, in_topic=0.6, test=2.0),
            training_row("embedding alone", block=0.5, other=-0.1, other_std=0.1, in_topic=0.6, test=2.1),
        ]
    )
    assert contrast("all", "CE", "adam")(rows).item() == pytest.approx(2.0)
    assert prominence("all", "CE", "adam")(rows).item() == pytest.approx(6)
    assert prominence("embedding alone", "CE", "adam")(rows).item() == pytest.approx(6)
    assert gap("embedding alone", "CE")(rows).item() == pytest.approx(0.05)
    assert contrast("all", "squared", "adam")(rows).empty


@pytest.mark.parametrize(("block", "stands"), [(1.1, 1.1), (0.9, 0.9)])
def test_the_grade_of_values_is_ten_times_or_five_deviations(block: float, stands: float) -> None:
    by_ratio = training_row("with L2", in_topic=block, other=-0.1, other_std=9.0)
    by_deviations = training_row("with L2", in_topic=block, other=-9.0, other_std=0.2)
    for row in (by_ratio, by_deviations):
        assert standing("with L2", "CE", "adam")(Rows([MATRIX, row])).item() == pytest.approx(stands)


def test_trainings_without_progress_have_no_estimate() -> None:
    sizes = {"block": 0.5, "other": 0.1, "other_std": 0.1, "in_topic": 0.5}
    adam = training_row("all", **sizes)
    far = training_row("all", optimizer="sgd", rate=3.0, test=3.8, **sizes)
    near = training_row("all", optimizer="sgd", test=4.55, **sizes)
    second = [row | {"seed": 2} for row in (adam, far, near | {"test": 3.9})]
    rows = Rows([MATRIX, adam, far, near, *second])
    # A constant has the loss log 100 = 4.605.
    assert progress("all", "CE", "sgd", 3.0)(rows).tolist() == pytest.approx([0.801, 0.801], abs=1e-3)
    assert contrast("all", "CE", "sgd", 3.0)(rows).tolist() == pytest.approx([4, 4])
    for statistic in (contrast, prominence, standing):
        assert statistic("all", "CE", "sgd")(rows).empty
        assert "1 of 2 trainings have made no progress" in statistic("all", "CE", "sgd").missing_rows(rows)


def test_ordered_attention_is_counted_over_settings() -> None:
    records: list[dict[str, Any]] = [MATRIX]
    for number, (optimizer, rate) in enumerate(SETTINGS):
        setting = {"optimizer": optimizer, "rate": rate}
        records.append(training_row("with values", **setting, test=4.59 if rate == 0.003 else 3.6))
        attended = {"same_word": 3.0 if number < 2 else 1.0, "same_topic": 2.0, "other": 1.0}
        records.append(training_row("with values", **setting, kind="attention", shift=0, **attended))
    rows = Rows(records)
    # The first two settings are in order, and one of them has made no progress.
    found = statistics.ordered().counts(rows)
    assert found is not None
    assert (found.successes.tolist(), found.trials.tolist()) == ([1], [4])
    assert over("same_topic", "other", "adam", 0.01)(rows).item() == pytest.approx(0.6931, abs=1e-4)
    assert over("same_topic", "other", "adam", 0.003)(rows).empty


def stages(keys: list[float], values: list[float]) -> Rows:
    training = {"seed": 1, "name": "one layer", "optimizer": "sgd", "step": range(0, 10 * len(keys), 10)}
    return Rows(table("stage", **training, keys=keys, values=values))


def test_stages_of_training_have_the_expected_values() -> None:
    rows = stages([1.0, 1.0, 1.0, 2.0, 4.0], [0.0, 5.0, 9.0, 10.0, 10.0])
    assert statistics.early_growth()(rows).item() == 0
    assert statistics.slowing()(rows).item() == pytest.approx(0.0)
    assert statistics.growth("keys")(rows).item() == 4
    together = stages([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert statistics.early_growth()(together).item() == pytest.approx(1)
    assert statistics.slowing()(together).item() == pytest.approx(1)
    still = stages([1.0] * 5, [0.0, 5.0, 9.0, 10.0, 10.0])
    assert statistics.slowing()(still).item() == 1
