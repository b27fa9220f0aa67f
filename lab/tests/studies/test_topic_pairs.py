"""Tests of the study `topic-pairs`, which makes the claims of `topic-pretrained` with other seeds."""

import pytest
from known_rows import verdict_of
from test_topic_pretrained import rows

from trialogue_lab.studies.topic_pairs import STUDY


@pytest.mark.parametrize(("together", "answer"), [(0.9, "holds"), (0.01, "refuted")])
def test_attention_to_cooccurring_words_decides(together: float, answer: str) -> None:
    table = rows(together=together)
    for record in table.records:
        record["same"] *= 1 + 0.001 * record["seed"]  # equal numbers would have no interval
    assert verdict_of(STUDY, STUDY.claims[0].id, table, "default", seeds=(0, 1)).answer == answer
