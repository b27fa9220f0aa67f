"""A made-up pair of languages in which p(target | source) is known exactly, and with it how target tokens depend.

Every source word has synonyms, phrases of one or two target tokens. A sentence is translated word by word; each word is
of the style (the number of its synonym) of the one before it with odds e^J, words that are neighbours trade places with
a probability, and now and then a token is any of those that the source's synonyms are made of. What was chosen is
hidden, and a Markov chain: so the law of translations is one of `HiddenMarkov`. J, `coupling`, is the dial: at J = 0,
without longer phrases and without trades, target tokens are independent given the source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Natural, NonNegative, Several, Share, validated
from trialogue_lab.studies.translation_dependency.hidden_markov import HiddenMarkov

Phrases = Sequence[Sequence[Sequence[int]]]
"""Of each source word its synonyms, each a phrase of tokens."""
SPECIAL = 4
"""Ids 0 to 3 are padding, end of sequence, mask and beginning, as in `SubwordVocabulary`."""


class _State(NamedTuple):
    """Token `place` of the phrase of `word` in `style`, which stands where it does: in order, early or late."""

    order: str
    word: int
    style: int
    place: int


@validated
def translation_law(
    phrases: Sequence[Sequence[Sequence[Natural]]],
    *,
    coupling: NonNegative,
    swapping: Share = 0.0,
    slips: Share = 0.0,
    vocab_size: Count | None = None,
) -> HiddenMarkov:
    """The law of translations of a sentence whose words have the synonyms `phrases`, of tokens 0, 1, 2, ...

    From the first word on, each trades places with the next with probability `swapping`, unless it has just been
    traded. The style of the first word that is written is uniform; of the following ones it stays with odds
    e^`coupling` against each other style. Each token is with probability `slips` one of the `vocab_size` uniformly,
    which by default are those of `phrases`. Raises `InputError` for words with unequal numbers of synonyms, and for
    what is no phrase or probability.
    """
    styles = len(phrases[0]) if len(phrases) else 0
    if not styles or any(len(word) != styles for word in phrases):
        raise InputError("phrases", phrases, "give every word as many synonyms, at least one")
    if any(not phrase for word in phrases for phrase in word):
        raise InputError("phrases", phrases, "give every phrase a token")
    least = 1 + max(_tokens_of(phrases))
    vocab = least if vocab_size is None else vocab_size
    if vocab < least:
        raise InputError("vocab_size", vocab, f"the phrases have {least} tokens: use at least as many")
    stay = exp(min(coupling, 700.0))
    states = _states(phrases)
    place = {state: number for number, state in enumerate(states)}
    initial = torch.zeros(len(states), dtype=torch.float64)
    transitions = torch.zeros(len(states), len(states), dtype=torch.float64)
    ending = torch.zeros_like(initial)
    emissions = torch.full((len(states), vocab), slips / vocab, dtype=torch.float64)
    for order, word, weight in _blocks(0, len(phrases), swapping):
        for style in range(styles):
            initial[place[_State(order, word, style, 0)]] = weight / styles
    for number, state in enumerate(states):
        phrase = phrases[state.word][state.style]
        emissions[number, phrase[state.place]] += 1 - slips
        if state.place + 1 < len(phrase):
            transitions[number, place[state._replace(place=state.place + 1)]] = 1.0
            continue
        following = _following(state, len(phrases), swapping)
        if not following:
            ending[number] = 1.0
        for order, word, weight in following:
            for style in range(styles):
                kept = (stay if style == state.style else 1.0) / (stay + styles - 1)
                transitions[number, place[_State(order, word, style, 0)]] += weight * kept
    return HiddenMarkov(initial, transitions, emissions, ending)


def _states(phrases: Phrases) -> list[_State]:
    last = len(phrases) - 1
    return [
        _State(order, word, style, place)
        for word, synonyms in enumerate(phrases)
        for order in ("in order", *(("early",) if word else ()), *(("late",) if word < last else ()))
        for style, phrase in enumerate(synonyms)
        for place in range(len(phrase))
    ]


def _blocks(word: int, words: int, swap: float) -> list[tuple[str, int, float]]:
    """What may be written first of the words from `word` on: how it stands, which word, with what probability."""
    if word + 1 < words:
        return [("in order", word, 1 - swap), ("early", word + 1, swap)]
    return [("in order", word, 1.0)] if word < words else []


def _following(state: _State, words: int, swap: float) -> list[tuple[str, int, float]]:
    if state.order == "early":
        return [("late", state.word - 1, 1.0)]
    return _blocks(state.word + (2 if state.order == "late" else 1), words, swap)


def phrases_of_lengths(lengths: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """Phrases of so many tokens, all of them different: `lengths` are those of each word's synonyms."""
    token = iter(range(sum(sum(word) for word in lengths)))
    return [[[next(token) for _ in range(length)] for length in word] for word in lengths]


class Translations(HiddenMarkov):
    """The law of the translations of one source sentence, of tokens 0 to A - 1; `alphabet` (A,) has their ids."""

    def __init__(self, law: HiddenMarkov, alphabet: NDArray[np.int64]) -> None:
        super().__init__(law.initial, law.transitions, law.emissions, law.ending)
        self.alphabet = alphabet
        self._place = {token: place for place, token in enumerate(alphabet.tolist())}

    def log_prob(self, target: Sequence[int]) -> float:
        """log p(target | source) of token ids; -inf where it is no translation, such as an empty one."""
        places = [self._place.get(token, -1) for token in target]
        if not places or min(places) < 0:
            return -np.inf
        return -float(self.energy(torch.tensor([places]))[0])


@validated
@dataclass(frozen=True, kw_only=True)
class TranslationLanguage:
    """A lexicon of `words` source words with two synonyms each, drawn from `seed`, and how sentences are translated.

    A synonym has two tokens with probability `expanding`, else one; no two share a token. `coupling`, `swapping` and
    `slips` are those of `translation_law`. A source sentence is made of different words. Ids below `SPECIAL` are those
    of `SubwordVocabulary`, then come source words, then target tokens: `vocab_size` in all. With `synonyms` = 1 only
    the first of each word's is used: the lexicon of a teacher that always translates alike. A token that slips is
    replaced by one of the tokens of the synonyms in use, uniformly. Raises `InputError` for
    what is no probability, no number of words, and other numbers of synonyms than 1 and 2.
    """

    words: Count = 40
    coupling: NonNegative = 1.0
    swapping: Share = 0.1
    expanding: Share = 0.5
    slips: Share = 0.001
    synonyms: Literal[1, 2] = 2
    seed: Natural = 0

    @cached_property
    def lexicon(self) -> list[list[list[int]]]:
        """Of each source word the ids of the tokens of its synonyms, of which some may not be in use."""
        draws = numpy_generator(self.seed, "translation language", "lexicon")
        lengths = 1 + (draws.random((self.words, 2)) < self.expanding)
        first = SPECIAL + self.words
        phrases = phrases_of_lengths(lengths.tolist())
        return [[[first + token for token in phrase] for phrase in word] for word in phrases]

    @cached_property
    def vocab_size(self) -> int:
        """Special tokens, source words, and target tokens."""
        return 1 + max(_tokens_of(self.lexicon))

    @validated
    def phrases(self, source: Several[int]) -> list[list[list[int]]]:
        """The synonyms of the words of `source`, ids; raises `InputError` for no sentence of different words."""
        hint = f"give different words from {SPECIAL} to {SPECIAL + self.words - 1}"
        known = range(SPECIAL, SPECIAL + self.words)
        if not source or len(set(source)) < len(source) or not set(source) <= set(known):
            raise InputError("source", tuple(source), hint)
        return [self.lexicon[word - SPECIAL][: self.synonyms] for word in source]

    def condition(self, source: Sequence[int], *, slips: float | None = None) -> Translations:
        """Return the distribution that `translate` samples from, with another share of slips if one is given.

        Its alphabet has the tokens of the synonyms in use. Raises `InputError` as `phrases` does.
        """
        phrases = self.phrases(source)
        alphabet = np.array(_tokens_of(phrases), np.int64)
        place = {token: number for number, token in enumerate(alphabet.tolist())}
        law = translation_law(
            [[[place[token] for token in phrase] for phrase in word] for word in phrases],
            coupling=self.coupling,
            swapping=self.swapping,
            slips=self.slips if slips is None else slips,
        )
        return Translations(law, alphabet)

    @validated
    def sources(self, count: Count, lengths: tuple[Count, Count], *, seed: Natural) -> list[list[int]]:
        """`count` sentences of different words, as many as `lengths` say, both ends included; the stream is `seed`'s.

        Raises `InputError` for a length that the words do not suffice for.
        """
        if not lengths[0] <= lengths[1] <= self.words:
            raise InputError("lengths", lengths, f"use two lengths up to words={self.words}")
        draws = numpy_generator(seed, "translation language", "sources")
        sizes = draws.integers(lengths[0], lengths[1] + 1, count)
        order = draws.random((count, self.words)).argsort(1)
        return [(SPECIAL + row[:size]).tolist() for row, size in zip(order, sizes, strict=True)]

    def translate(self, sources: Sequence[Sequence[int]], *, seed: int) -> list[list[int]]:
        """A translation of each of `sources`, drawn from its law; the stream is "translations" of `seed`."""
        draws = numpy_generator(seed, "translation language", "translations")
        stay = exp(min(self.coupling, 700.0))
        stay = stay / (stay + self.synonyms - 1)
        return [self._drawn(self.phrases(source), draws, stay) for source in sources]

    def _drawn(self, phrases: list[list[list[int]]], draws: np.random.Generator, stay: float) -> list[int]:
        words = len(phrases)
        style = int(draws.integers(self.synonyms))
        changes = draws.random(words) >= stay
        swaps = draws.random(words) < self.swapping
        order: list[int] = []
        while len(order) < words:
            word = len(order)
            order += [word + 1, word] if word + 1 < words and swaps[word] else [word]
        written: list[int] = []
        for number, word in enumerate(order):
            style = (style + int(number > 0 and changes[number])) % self.synonyms
            written += phrases[word][style]
        slipping = np.flatnonzero(draws.random(len(written)) < self.slips)
        if len(slipping):
            every = _tokens_of(phrases)
            for place in slipping.tolist():
                written[place] = every[draws.integers(len(every))]
        return written


def _tokens_of(phrases: Phrases) -> list[int]:
    """Return the tokens of `phrases` in ascending order, each once."""
    return sorted({token for word in phrases for phrase in word for token in phrase})
