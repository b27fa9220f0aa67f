import itertools
import math
from collections import Counter

import pytest
import torch

from trialogue.errors import InputError
from trialogue_lab.studies.translation_dependency.language import (
    SPECIAL,
    TranslationLanguage,
    phrases_of_lengths,
    translation_model,
)


def _listed(phrases, coupling, swapping):
    """The law of clean translations, by listing every order and every style."""
    words, styles, law = len(phrases), len(phrases[0]), Counter()
    stay = math.exp(coupling) / (math.exp(coupling) + styles - 1)

    def orders(word):
        if word >= words:
            return [((), 1.0)]
        kept = [((word, *rest), p * (1 - swapping * (word + 1 < words))) for rest, p in orders(word + 1)]
        if word + 1 < words:
            kept += [((word + 1, word, *rest), p * swapping) for rest, p in orders(word + 2)]
        return kept

    for order, chance in orders(0):
        for chosen in itertools.product(range(styles), repeat=words):
            weight = chance / styles
            for left, right in itertools.pairwise(chosen):
                weight *= stay if left == right else (1 - stay) / (styles - 1)
            target = [
                token for word, style in zip(order, chosen, strict=True) for token in phrases[word][style]
            ]
            law[tuple(target)] += weight
    return law


@pytest.mark.parametrize("lengths", [((1, 2), (2, 1)), ((1, 1), (1, 2), (2, 2)), ((1, 2, 1), (2, 1, 1))])
def test_the_law_is_that_of_all_orders_and_styles(lengths):
    phrases = phrases_of_lengths(lengths)
    law = translation_model(phrases, coupling=0.7, swapping=0.3)
    listed = _listed(phrases, 0.7, 0.3)
    assert sum(listed.values()) == pytest.approx(1)
    for target, chance in listed.items():
        assert math.exp(-float(law.energy(torch.tensor([target]))[0])) == pytest.approx(chance)
    longest = max(map(len, listed))
    assert float(law.length_log_probs(longest).exp().sum()) == pytest.approx(1)
    wrong = translation_model(phrases, coupling=0.7, swapping=0.25)
    target = min(listed, key=listed.get)
    assert math.exp(-float(wrong.energy(torch.tensor([target]))[0])) != pytest.approx(listed[target])


def _translations(language, source):
    """The distribution of `translate`: words in every order, each token kept, or any of those in use."""
    phrases, law = language.phrases(source), Counter()
    every = {token for word in phrases for phrase in word for token in phrase}
    for clean, chance in _listed(phrases, language.coupling, language.swapping).items():
        for written in itertools.product(every, repeat=len(clean)):
            kept = [
                (1 - language.slips) * (token == own) + language.slips / len(every)
                for token, own in zip(written, clean, strict=True)
            ]
            law[written] += chance * math.prod(kept)
    return law


@pytest.mark.parametrize(("synonyms", "expanding"), [(1, 1.0), (2, 0.0)])
def test_translations_have_the_distribution_that_is_stated(synonyms, expanding):
    language = TranslationLanguage(
        words=3, swapping=0.3, expanding=expanding, slips=0.4, synonyms=synonyms, seed=2
    )
    source, drawn = [SPECIAL + 2, SPECIAL], 10_000
    stated, listed = language.condition(source), _translations(language, source)
    assert sum(listed.values()) == pytest.approx(1, abs=1e-12)
    for target, chance in listed.items():
        assert math.exp(stated.log_prob(target)) == pytest.approx(chance, abs=1e-12)
    counts = Counter(map(tuple, language.translate([source] * drawn, seed=1)))
    assert set(counts) <= set(listed)
    clean = language.condition(source, slips=0.0)
    assert any(clean.log_prob(target) == -math.inf for target in counts)
    for impossible in ([*next(iter(counts)), SPECIAL], []):
        assert stated.log_prob(impossible) == -math.inf
    for target, chance in listed.items():
        assert abs(counts[target] / drawn - chance) < 5 * math.sqrt(chance / drawn)


def test_one_synonym_is_a_lexicon_that_always_translates_alike():
    settings = {"words": 6, "seed": 2, "swapping": 0.0, "slips": 0.0}
    language, alike = TranslationLanguage(**settings), TranslationLanguage(**settings, synonyms=1)
    sources = alike.sources(50, (2, 4), seed=5)
    assert {len(source) for source in sources} == {2, 3, 4}
    assert all(len(set(source)) == len(source) for source in sources)
    assert alike.vocab_size == language.vocab_size
    for source, target in zip(sources, alike.translate(sources, seed=9), strict=True):
        assert target == [token for word in language.phrases(source) for token in word[0]]
        assert alike.condition(source).log_prob(target) == 0


def test_what_are_no_phrases_and_no_sentence_is_refused():
    for phrases, message in (
        ([], "same number"),
        ([[[0], [1]], [[2]]], "same number"),
        ([[[]]], "one token"),
    ):
        with pytest.raises(InputError, match=message):
            translation_model(phrases, coupling=1.0)
    language = TranslationLanguage(words=6)
    for source in ([], [SPECIAL, SPECIAL], [SPECIAL + 6], [1]):
        with pytest.raises(InputError, match="different words from 4 to 9"):
            language.condition(source)
    for field, value in (("swapping", 1.5), ("synonyms", 3)):
        with pytest.raises(InputError, match=field):
            TranslationLanguage(**{field: value})
