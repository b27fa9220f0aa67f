"""Tests of the made-up language of translations against enumeration and samples."""

import itertools
import math
from collections import Counter

import pytest
import torch

from refusals import expect_error
from trialogue.errors import InputError
from trialogue_lab.studies.translation_dependency.language import (
    SPECIAL,
    TranslationLanguage,
    make_phrases,
    make_translation_model,
)


def _enumerate_clean(phrases, coupling, swapping):
    """Return the distribution of clean translations by enumerating every order and every style."""
    words, styles, distribution = len(phrases), len(phrases[0]), Counter()
    stay = math.exp(coupling) / (math.exp(coupling) + styles - 1)

    def orders(word):
        if word >= words:
            return [((), 1.0)]
        found = [((word, *rest), p * (1 - swapping * (word + 1 < words))) for rest, p in orders(word + 1)]
        if word + 1 < words:
            found += [((word + 1, word, *rest), p * swapping) for rest, p in orders(word + 2)]
        return found

    for order, chance in orders(0):
        for chosen in itertools.product(range(styles), repeat=words):
            weight = chance / styles
            for left, right in itertools.pairwise(chosen):
                weight *= stay if left == right else (1 - stay) / (styles - 1)
            target = [
                token for word, style in zip(order, chosen, strict=True) for token in phrases[word][style]
            ]
            distribution[tuple(target)] += weight
    return distribution


@pytest.mark.parametrize("lengths", [((1, 2), (2, 1)), ((1, 1), (1, 2), (2, 2)), ((1, 2, 1), (2, 1, 1))])
def test_translation_model_agrees_with_enumeration(lengths):
    phrases = make_phrases(lengths)
    distribution = make_translation_model(phrases, coupling=0.7, swapping=0.3)
    expected = _enumerate_clean(phrases, 0.7, 0.3)
    assert sum(expected.values()) == pytest.approx(1)
    for target, chance in expected.items():
        assert math.exp(-float(distribution.energy(torch.tensor([target]))[0])) == pytest.approx(chance)
    longest = max(map(len, expected))
    assert float(distribution.length_log_probs(longest).exp().sum()) == pytest.approx(1)
    wrong = make_translation_model(phrases, coupling=0.7, swapping=0.25)
    target = min(expected, key=expected.get)
    assert math.exp(-float(wrong.energy(torch.tensor([target]))[0])) != pytest.approx(expected[target])


def _enumerate_translations(language, source):
    """Return the distribution of `translate`, in which each token may be replaced by a random token in use."""
    phrases, distribution = language.phrases(source), Counter()
    tokens = {token for word in phrases for phrase in word for token in phrase}
    for clean, chance in _enumerate_clean(phrases, language.coupling, language.swapping).items():
        for written in itertools.product(tokens, repeat=len(clean)):
            found = [
                (1 - language.slips) * (token == own) + language.slips / len(tokens)
                for token, own in zip(written, clean, strict=True)
            ]
            distribution[written] += chance * math.prod(found)
    return distribution


@pytest.mark.parametrize(("synonyms", "expanding"), [(1, 1.0), (2, 0.0)])
def test_translations_have_the_exact_distribution(synonyms, expanding):
    language = TranslationLanguage(
        words=3, swapping=0.3, expanding=expanding, slips=0.4, synonyms=synonyms, seed=2
    )
    source, draws = [SPECIAL + 2, SPECIAL], 10_000
    model, expected = language.condition(source), _enumerate_translations(language, source)
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    for target, chance in expected.items():
        assert math.exp(model.log_prob(target)) == pytest.approx(chance, abs=1e-12)
    counts = Counter(map(tuple, language.translate([source] * draws, seed=1)))
    assert set(counts) <= set(expected)
    clean = language.condition(source, slips=0.0)
    assert any(clean.log_prob(target) == -math.inf for target in counts)
    for impossible in ([*next(iter(counts)), SPECIAL], []):
        assert model.log_prob(impossible) == -math.inf
    for target, chance in expected.items():
        assert abs(counts[target] / draws - chance) < 5 * math.sqrt(chance / draws)


def test_translation_with_one_synonym_is_deterministic():
    settings = {"words": 6, "seed": 2, "swapping": 0.0, "slips": 0.0}
    language, deterministic = TranslationLanguage(**settings), TranslationLanguage(**settings, synonyms=1)
    sources = deterministic.sources(50, (2, 4), seed=5)
    assert {len(source) for source in sources} == {2, 3, 4}
    assert all(len(set(source)) == len(source) for source in sources)
    assert deterministic.vocab_size == language.vocab_size
    for source, target in zip(sources, deterministic.translate(sources, seed=9), strict=True):
        assert target == [token for word in language.phrases(source) for token in word[0]]
        assert deterministic.condition(source).log_prob(target) == 0


def test_invalid_phrases_and_sentences_are_rejected():
    for phrases, message in (
        ([], "same number"),
        ([[[0], [1]], [[2]]], "same number"),
        ([[[]]], "one token"),
    ):
        expect_error(message, make_translation_model, phrases, coupling=1.0)
    language = TranslationLanguage(words=6)
    for source in ([], [SPECIAL, SPECIAL], [SPECIAL + 6], [1]):
        expect_error("different words from 4 to 9", language.condition, source)
    for field, value in (("swapping", 1.5), ("synonyms", 3)):
        with pytest.raises(InputError, match=field):
            TranslationLanguage(**{field: value})
