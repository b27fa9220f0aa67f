"""An artificial language pair with an exactly known distribution of translations.

A sentence is translated word by word. Every source word has numbered synonyms, which are phrases of target
tokens. The number of a word's synonym equals that of the previous word with odds e^J, so that J determines
how strongly target tokens depend on each other. Neighboring words may be swapped, and tokens may be replaced
by random ones.
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
"""For each source word its synonyms, each a phrase of tokens."""
SPECIAL = 4
"""Number of special tokens. Ids 0 to 3 are padding, end of sequence, mask and beginning, as in `SubwordVocabulary`."""


class _State(NamedTuple):
    """Hidden state: token `place` of the synonym number `style` of `word`.

    `order` is "in order", or "early" or "late" if the word is swapped.
    """

    order: str
    word: int
    style: int
    place: int


@validated
def make_translation_model(
    phrases: Sequence[Sequence[Sequence[Natural]]],
    *,
    coupling: NonNegative,
    swapping: Share = 0.0,
    slips: Share = 0.0,
    vocab_size: Count | None = None,
) -> HiddenMarkov:
    """Return the distribution of the translations of one sentence.

    Every word has numbered synonyms. Starting with the first word, each word is swapped with the next one
    with a given probability, unless it has just been swapped.

    Args:
        phrases: For each word, its synonyms. Each synonym is a list of token ids 0, 1, 2, ...
        coupling: Strength J of the dependence between words. A word has the same synonym number as the
            previous output word with odds e^J against each other number.
        swapping: Probability of a swap.
        slips: Probability that a token is replaced by a uniformly random one.
        vocab_size: Number of tokens (default: the number of tokens in `phrases`).

    Raises:
        InputError: If words have different numbers of synonyms, a synonym is empty, or `vocab_size` is too
            small.
    """
    styles = len(phrases[0]) if len(phrases) else 0
    if not styles or any(len(word) != styles for word in phrases):
        raise InputError("phrases", phrases, "give every word the same number of synonyms, at least one")
    if any(not phrase for word in phrases for phrase in word):
        raise InputError("phrases", phrases, "give every phrase at least one token")
    known = 1 + max(_list_tokens(phrases))
    vocab = known if vocab_size is None else vocab_size
    if vocab < known:
        raise InputError("vocab_size", vocab, f"use at least the {known} tokens of the phrases")
    same = exp(min(coupling, 700.0))
    states = _list_states(phrases)
    index = {state: number for number, state in enumerate(states)}
    initial = torch.zeros(len(states), dtype=torch.float64)
    transitions = torch.zeros(len(states), len(states), dtype=torch.float64)
    ending = torch.zeros_like(initial)
    emissions = torch.full((len(states), vocab), slips / vocab, dtype=torch.float64)
    for order, word, probability in _list_next_words(0, len(phrases), swapping):
        for style in range(styles):
            initial[index[_State(order, word, style, 0)]] = probability / styles
    for number, state in enumerate(states):
        phrase = phrases[state.word][state.style]
        emissions[number, phrase[state.place]] += 1 - slips
        if state.place + 1 < len(phrase):
            transitions[number, index[state._replace(place=state.place + 1)]] = 1.0
            continue
        following = _list_words_after(state, len(phrases), swapping)
        ending[number] = float(not following)
        for order, word, probability in following:
            for style in range(styles):
                share = (same if style == state.style else 1.0) / (same + styles - 1)
                transitions[number, index[_State(order, word, style, 0)]] += probability * share
    return HiddenMarkov(initial, transitions, emissions, ending)


def _list_states(phrases: Phrases) -> list[_State]:
    last = len(phrases) - 1
    return [
        _State(order, word, style, place)
        for word, synonyms in enumerate(phrases)
        for order in ("in order", *(("early",) if word else ()), *(("late",) if word < last else ()))
        for style, phrase in enumerate(synonyms)
        for place in range(len(phrase))
    ]


def _list_next_words(word: int, words: int, swapping: float) -> list[tuple[str, int, float]]:
    """Return the words that can be translated next, as (order, word, probability).

    All words before `word` are translated.
    """
    if word + 1 < words:
        return [("in order", word, 1 - swapping), ("early", word + 1, swapping)]
    return [("in order", word, 1.0)] if word < words else []


def _list_words_after(state: _State, words: int, swapping: float) -> list[tuple[str, int, float]]:
    if state.order == "early":
        return [("late", state.word - 1, 1.0)]
    return _list_next_words(state.word + (2 if state.order == "late" else 1), words, swapping)


def make_phrases(lengths: Sequence[Sequence[int]]) -> list[list[list[int]]]:
    """Return synonyms made of distinct tokens 0, 1, 2, ...

    Args:
        lengths: For each word, the numbers of tokens of its synonyms.

    Returns:
        For each word its synonyms, each a list of token ids.
    """
    token = iter(range(sum(map(sum, lengths))))
    return [[[next(token) for _ in range(length)] for length in word] for word in lengths]


class Translations(HiddenMarkov):
    """Distribution of the translations of one source sentence, over tokens 0 to A - 1.

    Args:
        model: The distribution.
        alphabet: Token ids (A,) of the language, one for each of the tokens 0 to A - 1.
    """

    def __init__(self, model: HiddenMarkov, alphabet: NDArray[np.int64]) -> None:
        super().__init__(model.initial, model.transitions, model.emissions, model.ending)
        self.alphabet = alphabet
        self._index = {token: number for number, token in enumerate(alphabet.tolist())}

    def log_prob(self, target: Sequence[int]) -> float:
        """Return the log-probability of a translation, given its source sentence.

        Args:
            target: Token ids.

        Returns:
            The log-probability, which is -inf if `target` is empty or impossible.
        """
        tokens = [self._index.get(token, -1) for token in target]
        if not tokens or min(tokens) < 0:
            return -np.inf
        return -float(self.energy(torch.tensor([tokens]))[0])


@validated
@dataclass(frozen=True, kw_only=True)
class TranslationLanguage:
    """Artificial language with a random lexicon, whose distribution of translations is known.

    A source sentence consists of distinct words. Token ids start with the special tokens of `SubwordVocabulary`, then
    the source words, then the target tokens. No two synonyms share a token.

    Args:
        words: Number of source words.
        coupling: Coupling J. A word keeps the synonym number of the previous word with odds e^J.
        swapping: Probability that two neighboring words are swapped.
        expanding: Probability that a synonym has two tokens instead of one.
        slips: Probability that a token is replaced by a random token of the sentence's synonyms.
        synonyms: Number of synonyms in use. With 1, every sentence has one translation.
        seed: Seed of the lexicon.

    Raises:
        InputError: If an argument is out of range. The methods raise it for invalid source sentences.
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
        """Token ids of both synonyms of each source word, even if only one synonym is used."""
        random = numpy_generator(self.seed, "translation language", "lexicon")
        lengths = 1 + (random.random((self.words, 2)) < self.expanding)
        first = SPECIAL + self.words
        phrases = make_phrases(lengths.tolist())
        return [[[first + token for token in phrase] for phrase in word] for word in phrases]

    @cached_property
    def vocab_size(self) -> int:
        """Number of special tokens, source words and target tokens."""
        return 1 + max(_list_tokens(self.lexicon))

    @validated
    def phrases(self, source: Several[int]) -> list[list[list[int]]]:
        """Return the synonyms of each word of a source sentence.

        Args:
            source: Token ids of distinct source words.

        Returns:
            For each word, its synonyms. Each synonym is a list of token ids.

        Raises:
            InputError: If `source` is empty, repeats a word or has an id that is not a source word.
        """
        hint = f"give different words from {SPECIAL} to {SPECIAL + self.words - 1}"
        known = range(SPECIAL, SPECIAL + self.words)
        if not source or len(set(source)) < len(source) or not set(source) <= set(known):
            raise InputError("source", tuple(source), hint)
        return [self.lexicon[word - SPECIAL][: self.synonyms] for word in source]

    def condition(self, source: Sequence[int], *, slips: float | None = None) -> Translations:
        """Return the distribution of the translations of a source sentence, as sampled by `translate`.

        Args:
            source: Token ids of the source words.
            slips: Probability that a token is replaced by a random one (default: the probability of the language).

        Returns:
            The distribution over the tokens of the synonyms in use.
        """
        phrases = self.phrases(source)
        alphabet = np.array(_list_tokens(phrases), np.int64)
        index = {token: number for number, token in enumerate(alphabet.tolist())}
        model = make_translation_model(
            [[[index[token] for token in phrase] for phrase in word] for word in phrases],
            coupling=self.coupling,
            swapping=self.swapping,
            slips=self.slips if slips is None else slips,
        )
        return Translations(model, alphabet)

    @validated
    def sources(self, count: Count, lengths: tuple[Count, Count], *, seed: Natural) -> list[list[int]]:
        """Sample random source sentences, each of which consists of distinct words.

        Args:
            count: Number of sentences.
            lengths: Minimum and maximum number of words of a sentence, at most `words`.
            seed: Seed of the sentences.

        Returns:
            Token ids of each sentence.
        """
        if not lengths[0] <= lengths[1] <= self.words:
            raise InputError("lengths", lengths, f"use two lengths up to words={self.words}")
        random = numpy_generator(seed, "translation language", "sources")
        sizes = random.integers(lengths[0], lengths[1] + 1, count)
        order = random.random((count, self.words)).argsort(1)
        return [(SPECIAL + row[:size]).tolist() for row, size in zip(order, sizes, strict=True)]

    def translate(self, sources: Sequence[Sequence[int]], *, seed: int) -> list[list[int]]:
        """Sample one translation of each source sentence.

        Args:
            sources: Token ids of the source words of each sentence.
            seed: Seed of the translations.

        Returns:
            Token ids of each translation.
        """
        random = numpy_generator(seed, "translation language", "translations")
        return [self._sample(self.phrases(source), random) for source in sources]

    def _sample(self, phrases: list[list[list[int]]], random: np.random.Generator) -> list[int]:
        words, same = len(phrases), exp(min(self.coupling, 700.0))
        style = int(random.integers(self.synonyms))
        changes = random.random(words) >= same / (same + self.synonyms - 1)
        swaps = random.random(words) < self.swapping
        order: list[int] = []
        while len(order) < words:
            word = len(order)
            order += [word + 1, word] if word + 1 < words and swaps[word] else [word]
        target: list[int] = []
        for number, word in enumerate(order):
            style = (style + int(number > 0 and changes[number])) % self.synonyms
            target += phrases[word][style]
        replaced = np.flatnonzero(random.random(len(target)) < self.slips)
        tokens = _list_tokens(phrases)
        for place in replaced.tolist():
            target[place] = tokens[random.integers(len(tokens))]
        return target


def _list_tokens(phrases: Phrases) -> list[int]:
    """Return the distinct tokens of `phrases` in ascending order."""
    return sorted({token for word in phrases for phrase in word for token in phrase})
