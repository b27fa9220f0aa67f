"""Tests of hub corpora, one-word variants of sentences and bootstrap intervals of `translation`."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from refusals import expect_error
from trialogue.generation.translation.scores import count_repeated_words, translation_quality
from trialogue_lab.studies.translation.hub_pairs import HUB_PAIRS, load_hub_pairs
from trialogue_lab.studies.translation.intervals import compute_bleu_interval, compute_stutter_interval
from trialogue_lab.studies.translation.variants import find_one_word_variants


def _fake_loader(requests):
    def load_dataset(repository, configuration, split):
        requests.append((repository, configuration, split))
        other = {"train": "sehe", "validation": "frage", "test": "rufe"}[split]
        return {"translation": [{"de": f"ich {other} dich", "en": f"I {split} you"}, {"de": "", "en": "x"}]}

    return SimpleNamespace(load_dataset=load_dataset)


def test_splits_of_the_hub_have_the_requested_direction(monkeypatch):
    requests = []
    monkeypatch.setitem(sys.modules, "datasets", _fake_loader(requests))
    found = load_hub_pairs("wmt14-en-de")
    assert found.train.sources == ["I train you"]
    assert found.test.targets == ["ich rufe dich"]
    assert found.train.left_out == 1
    assert requests == [("wmt/wmt14", "de-en", split) for split in ("train", "validation", "test")]


def test_both_directions_of_a_corpus_have_a_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", _fake_loader([]))
    there, back = load_hub_pairs("wmt14-de-en"), load_hub_pairs("wmt14-en-de")
    assert (there.train.sources, there.train.targets) == (back.train.targets, back.train.sources)
    assert len(HUB_PAIRS) == 6


def test_unavailable_corpora_are_rejected(monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("no route\nto the hub")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=offline))
    expect_error(r"wmt/wmt16 could not be loaded from the hub \(no route\)", load_hub_pairs, "wmt16-ro-en")
    expect_error("use one of " + ", ".join(HUB_PAIRS), load_hub_pairs, "wmt13-de-en")
    monkeypatch.setitem(sys.modules, "datasets", None)
    expect_error(r"pip install .trialogue\[hub\]", load_hub_pairs, "wmt17-zh-en")


REFERENCES = ["the cat sat on the mat .", "a dog had had enough of it", "we go home now together"]
OUTPUTS = ["the the cat sat on the mat .", "a dog had had had enough of of it", "we go home now"]


def test_interval_of_bleu_contains_the_score():
    outputs, references = OUTPUTS * 20, REFERENCES * 20
    low, high = compute_bleu_interval(outputs, references, seed=1)
    assert low < translation_quality(outputs, references).bleu < high
    assert compute_bleu_interval(OUTPUTS[:1] * 9, REFERENCES[:1] * 9, seed=1) == pytest.approx(
        [translation_quality(OUTPUTS[:1] * 9, REFERENCES[:1] * 9).bleu] * 2
    )


def test_interval_of_the_stutter_rate_is_binomial_for_pairs():
    outputs = ["a a"] * 30 + ["a b"] * 70
    low, high = compute_stutter_interval(count_repeated_words(outputs, ["a b"] * 100), seed=2)
    assert abs(low - (0.3 - 1.96 * np.sqrt(0.3 * 0.7 / 100))) < 0.03
    assert abs(high - (0.3 + 1.96 * np.sqrt(0.3 * 0.7 / 100))) < 0.03


def test_one_word_variants_differ_from_a_known_sentence_by_at_most_one_word():
    known = ["Tom is here.", "I see the old dog"]
    requests = [
        "Mary is here!",
        "tom is",
        "Tom is not here",
        "I see a new dog",
        "I see the dog",
        "Tom",
        "Tom is here",
    ]
    assert find_one_word_variants(requests, known).tolist() == [True, True, True, False, True, False, True]
