"""Tests of the study `topic-words`: cosines of known vectors, statistics of known rows, and errors about words."""

from pathlib import Path

import pytest
import torch
from known_rows import table, verdict_of

from trialogue.errors import InputError
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.topic_pretrained.tiny import list_synthetic_words, make_tiny_model
from trialogue_lab.studies.topic_words import STUDY
from trialogue_lab.studies.topic_words.config import PRESETS, Config
from trialogue_lab.studies.topic_words.measure import find_tokens
from trialogue_lab.studies.topic_words.statistics import mean_cosine, smallest_lead


def rows(**cosines: float) -> Rows:
    """Return the pairs of words a and b of one topic, and c and d of another topic."""
    found = {"ab": 0.6, "ac": 0.1, "ad": 0.2, "bc": 0.1, "bd": 0.2, "cd": 0.3} | cosines
    topics = {"a": 0, "b": 0, "c": 1, "d": 1}
    first, second = ([topics[pair[place]] for pair in found] for place in (0, 1))
    same = [one == other for one, other in zip(first, second, strict=True)]
    columns = {"first": [pair[0] for pair in found], "second": [pair[1] for pair in found]}
    return Rows(
        table(
            "pair", **columns, first_topic=first, second_topic=second, same=same, cosine=list(found.values())
        )
    )


def test_statistics_of_known_rows_have_the_expected_values() -> None:
    assert mean_cosine(True)(rows())[0] == pytest.approx(0.45)
    assert mean_cosine(False)(rows())[0] == pytest.approx(0.15)
    # The second topic has a mean of 0.3 within, and of 0.15 to the first topic.
    assert smallest_lead()(rows())[0] == pytest.approx(0.15)
    assert smallest_lead()(Rows([])).empty


@pytest.mark.parametrize(
    ("cosines", "every_pair", "on_average"),
    [({}, "holds", "holds"), ({"bd": 0.35}, "refuted", "holds"), ({"cd": 0.1}, "refuted", "refuted")],
)
def test_each_claim_can_fail(cosines: dict[str, float], every_pair: str, on_average: str) -> None:
    found = [verdict_of(STUDY, claim.id, rows(**cosines), "default").answer for claim in STUDY.claims]
    assert found == [every_pair, on_average]


def test_cosines_of_a_run_are_those_of_the_embedding_table(tmp_path: Path) -> None:
    config = PRESETS["smoke"]
    pairs = STUDY.parts(config)[0].rows(tmp_path)
    assert [row["same"] for row in pairs] == [True, False, False, False, False, True]
    model = make_tiny_model("minilm", causal=False)
    for row in pairs:
        one, other = model.embeddings(find_tokens(model, [row["first"], row["second"]]))
        assert row["cosine"] == pytest.approx(float(torch.cosine_similarity(one, other, dim=0)), abs=1e-6)


@pytest.mark.parametrize("word", ["unheard", "baba bebe"])
def test_a_word_that_is_not_one_token_is_an_error(word: str) -> None:
    with pytest.raises(InputError, match="one token"):
        find_tokens(make_tiny_model("minilm", causal=False), [list_synthetic_words()[0], word])


def test_a_word_of_two_topics_is_an_error() -> None:
    with pytest.raises(InputError, match="one topic only"):
        Config(topics=(("a", "b"), ("b", "c")))
