"""Tests of statistics of `topic-pretrained` on known rows."""

from itertools import product
from typing import Any

import pytest

from trialogue.inspection.topic_structure.ratios import ATTENTION, COSINE, DOT
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.topic_pretrained.config import HERE, PUBLISHED, WORDS
from trialogue_lab.studies.topic_pretrained.statistics import (
    RANDOM,
    beyond_random,
    fall,
    gain,
    mostly,
    published_gain,
    ratio,
    together_gain,
)


def rows(**changes: Any) -> Rows:
    """Return rows of two seeds and two texts, whose ratios are 2, 1.5 and 1.2 by number of words, and 1 by chance."""
    records = []
    ratios = dict(zip(WORDS, changes.get("ratios", (2.0, 1.5, 1.2)), strict=True))
    models = changes.get("models", (*HERE, *PUBLISHED))
    for seed, model, text, words, measure, single, weights in product(
        (0, 1), models, ("a", "b"), WORDS, (COSINE, DOT, ATTENTION), (True, False), ("pretrained", RANDOM)
    ):
        if weights == RANDOM and text == "b":
            continue
        factor = 1.0 if weights == RANDOM else ratios[words]
        setting = {"kind": "comparison", "seed": seed, "model": model, "text": text, "words": words}
        numbers = {"same": 0.1 * factor, "different": 0.1, "together": changes.get("together", 0.3)}
        pairs = {"same_pairs": 40, "together_pairs": 40} | changes.get("pairs", {})
        kinds = {"measure": measure, "single": single, "weights": weights}
        records.append({**setting, **kinds, **numbers, **pairs})
    return Rows(records)


def test_statistics_average_texts_and_words() -> None:
    table = rows()
    assert gain("minilm", COSINE)(table).tolist() == pytest.approx([0.17 / 3] * 2)
    assert ratio("minilm", COSINE)(table).tolist() == pytest.approx([3.6 ** (1 / 3)] * 2)
    assert ratio("minilm", COSINE, 30)(table).tolist() == pytest.approx([1.5, 1.5])
    assert ratio("minilm", ATTENTION, weights=RANDOM)(table).tolist() == pytest.approx([1, 1])
    assert beyond_random("minilm", ATTENTION)(table).tolist() == pytest.approx([3.6 ** (1 / 3)] * 2)
    assert fall("minilm", ATTENTION)(table).tolist() == pytest.approx([2 / 1.2] * 2)
    assert together_gain("minilm", COSINE)(table).tolist() == pytest.approx([0.47 / 3 - 0.3] * 2)
    assert mostly("minilm", (COSINE, DOT, ATTENTION)).counts(table).trials.tolist() == [18, 18]  # type: ignore[union-attr]
    assert published_gain(DOT)(table).tolist() == pytest.approx([0.17 / 3] * 2)


@pytest.mark.parametrize("pairs", [{"same_pairs": 39}, {"same_pairs": 29, "together_pairs": 29}])
def test_unequal_or_few_pairs_are_not_compared(pairs: dict[str, int]) -> None:
    statistic = together_gain("minilm", COSINE)
    assert statistic(rows(pairs=pairs)).empty
    assert "12 of 12 comparisons have fewer than 30 pairs, or unequal" in statistic.missing_rows(
        rows(pairs=pairs)
    )


def test_ratios_need_positive_means() -> None:
    assert ratio("minilm", COSINE)(rows(ratios=(2.0, 1.5, -1.0))).empty
    assert published_gain(COSINE)(rows(models=HERE)).empty  # one missing model is not five
