"""Settings of the study: enumerated sentences, and networks trained on an artificial language."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Probability, Seeds, Settings, Share, Some
from trialogue_lab.studies.translation_dependency.hidden_markov import HiddenMarkov
from trialogue_lab.studies.translation_dependency.language import (
    SPECIAL,
    TranslationLanguage,
    make_phrases,
    make_translation_model,
)

SLIPS = 0.001
"""Probability that a target token is replaced at random. Otherwise, most sequences would be impossible."""
CONDITIONALS, DENOISER = "conditionals", "denoiser"
TWIN, ONE_STAGE, TWO_STAGES = "twin", "refiner, S = 1", "refiner, S = 2"
DETERMINISTIC = "refiner, S = 2, deterministic lexicon"
ARMS = (TWIN, ONE_STAGE, TWO_STAGES, DETERMINISTIC)
"""The networks that are trained from every seed."""
REAL_TEXT = "named translator"


@dataclass(frozen=True, kw_only=True)
class Sentence(Settings):
    """Structure of a source sentence, which determines how its target tokens depend on each other.

    Args:
        name: Name of the sentence in tables.
        words: For each word, the lengths in tokens of its two synonyms.
        swapping: Probability that two neighbouring words are swapped.
    """

    name: str
    words: Some[tuple[Count, Count]]
    swapping: Share = 0.0

    @property
    def pattern(self) -> str:
        """Lengths of the two synonyms of each word, as text."""
        return " ".join(f"{first}|{second}" for first, second in self.words)

    @property
    def longest(self) -> int:
        """Number of tokens of the longest possible translation."""
        return sum(max(word) for word in self.words)

    @property
    def vocab_size(self) -> int:
        """Number of different tokens that can occur in a translation. No two synonyms share a token."""
        return sum(map(sum, self.words))

    def translations(self, coupling: float, slips: float = SLIPS) -> HiddenMarkov:
        """Return the distribution of the translations of the sentence.

        Every source word has two synonyms in the target language, numbered 1 and 2.

        Args:
            coupling: Strength J of the dependence between words. The number of a word's synonym equals the number of
                the previous word's synonym with odds e^J.
            slips: Probability that a token is replaced by a random one. With 0, only correct translations have positive
                probability.
        """
        phrases = make_phrases(self.words)
        return make_translation_model(phrases, coupling=coupling, swapping=self.swapping, slips=slips)

    def deterministic_translations(self) -> HiddenMarkov:
        """Return the distribution of a teacher that always translates in the same way.

        It uses the first synonym of every word, in source order. Only random replacements of tokens remain.
        """
        first = [word[:1] for word in make_phrases(self.words)]
        return make_translation_model(first, coupling=0.0, slips=SLIPS, vocab_size=self.vocab_size)


STYLES = Sentence(name="styles", words=((1, 1),) * 4)
PHRASES = Sentence(name="phrases", words=((2, 2), (2, 2)))
LENGTHS = Sentence(name="lengths", words=((1, 2), (2, 1)))
ORDER = Sentence(name="order", words=((1, 1),) * 3, swapping=0.2)
ALL = Sentence(name="all of them", words=((1, 2), (2, 1), (1, 1)), swapping=0.2)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Refinement samples all target tokens in parallel, given their current values, and repeats this for several passes.
    Its output distribution is computed exactly for single sentences of an artificial language, and measured for
    networks that are trained on this language.

    Args:
        sentences: Sentences whose refinement is computed exactly.
        couplings: Strengths J of the dependence between the target tokens of these sentences.
        passes: Number of refinement passes.
        correct: Share of correct tokens that the perfect denoiser assumes. The other tokens are uniform over the
            language, as in training.
        chain_states: Largest number of token sequences of a sentence for which Markov chains are computed.
        chain_coupling: Strength J for the Markov chains.
        chain_passes: Number of steps of the Markov chains.
        seeds: Seeds of the trained networks. Each seed trains one network of each kind.
        words: Number of source words of the learned language.
        coupling: Strength J of the learned language.
        swapping: Probability that two neighbouring words are swapped in the learned language.
        expanding: Probability that a synonym has two tokens.
        source_lengths: Minimum and maximum number of words of the training sentences.
        test_lengths: Minimum and maximum number of words of the test sentences.
        pairs: Number of training pairs.
        layers: Number of layers of the encoder and of the decoder.
        heads: Number of attention heads.
        width: Width of the residual stream.
        training_steps: Number of training steps.
        batch_size: Number of pairs of a batch.
        sources: Number of test sentences.
        listed: Number of sentences for which the output distributions of networks are computed by enumeration.
        listed_words: Number of words of these sentences.
        starts: Number of random targets from which their refinement starts.
        tested_passes: Numbers of passes after which test sentences are scored.
        attended_pass: The pass in which attention is measured.
        model: Folder of a translator that `trialogue train-translation` wrote. Its attention is measured too.
        text: Table of pairs that `model` translates.
        columns: Columns of the source and of the target in `text`, counted from 1.
    """

    sentences: Some[Sentence] = (STYLES, PHRASES, LENGTHS, ORDER, ALL)
    couplings: Increasing[Annotated[float, Interval(ge=0, le=100)]] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    passes: Count = 10
    correct: Probability = 0.15
    chain_states: Count = 4096
    chain_coupling: Annotated[float, Interval(ge=0, le=100)] = 2.0
    chain_passes: Count = 40
    seeds: Seeds = tuple(range(4))
    words: Count = 16
    coupling: Annotated[float, Interval(ge=0, le=100)] = 2.0
    swapping: Share = 0.2
    expanding: Share = 0.5
    source_lengths: tuple[Count, Count] = (2, 6)
    test_lengths: tuple[Count, Count] = (4, 6)
    pairs: Count = 20_000
    layers: Count = 2
    heads: Count = 4
    width: Count = 48
    training_steps: Count = 1500
    batch_size: Count = 32
    sources: Count = 400
    listed: Count = 4
    listed_words: Count = 2
    starts: Count = 64
    tested_passes: Increasing[Count] = (1, 2, 4, 10)
    attended_pass: Annotated[int, Ge(2)] = 2
    model: str = ""
    text: str = ""
    columns: tuple[Count, Count] = (2, 1)

    def check(self) -> None:
        """Raise `InputError` if fields are inconsistent."""
        if not {1, 4, 10} <= set(self.tested_passes):
            raise InputError("tested_passes", self.tested_passes, "include 1, 4 and 10")
        if self.width % self.heads:
            raise InputError("width", self.width, f"use a multiple of heads={self.heads}")
        if bool(self.model) != bool(self.text):
            raise InputError("text", self.text, "give both a model and a text to translate, or neither")
        for field in ("source_lengths", "test_lengths"):
            shortest, longest = getattr(self, field)
            if not shortest <= longest <= self.words:
                raise InputError(field, (shortest, longest), f"use two sizes up to words={self.words}")
        if self.test_lengths[1] > self.source_lengths[1]:
            hint = f"use at most the longest training length, {self.source_lengths[1]}"
            raise InputError("test_lengths", self.test_lengths, hint)

    @property
    def longest(self) -> int:
        """Number of tokens of the longest target."""
        return 2 * self.source_lengths[1]

    @property
    def noise_tokens(self) -> int:
        """Number of tokens among which training noise is uniform."""
        return self.language().vocab_size - SPECIAL

    def language(self, synonyms: int = 2) -> TranslationLanguage:
        """Return the learned language.

        Args:
            synonyms: Number of synonyms per word. With 1, every sentence has one translation.
        """
        settings = self.shared(TranslationLanguage) | {"slips": SLIPS, "synonyms": synonyms}
        return TranslationLanguage(**settings | ({} if synonyms == 2 else {"swapping": 0.0}))


PRESETS = {
    "smoke": Config(
        sentences=(LENGTHS, ORDER),
        couplings=(0.0, 2.0),
        passes=4,
        chain_states=300,
        chain_passes=4,
        seeds=(0,),
        words=6,
        source_lengths=(2, 3),
        test_lengths=(2, 3),
        pairs=100,
        layers=1,
        heads=2,
        width=16,
        training_steps=20,
        batch_size=16,
        sources=20,
        listed=1,
        starts=4,
    ),
    "pilot": Config(
        sentences=(STYLES, PHRASES, LENGTHS, ORDER),
        couplings=(0.0, 2.0),
        chain_states=300,
        seeds=(100, 101),
        training_steps=500,
        sources=200,
        listed=2,
    ),
    "default": Config(),
    # After 6,000 steps on a seed of the pilot, 32 % of the two-stage refiner's translations were correct. The claims
    # about repeated words need more than half.
    "night": Config(seeds=tuple(range(10, 18)), training_steps=20_000),
    "paper": Config(
        seeds=tuple(range(20)),
        words=40,
        source_lengths=(2, 10),
        test_lengths=(6, 10),
        pairs=200_000,
        width=256,
        training_steps=20_000,
        batch_size=128,
        sources=2000,
    ),
}
