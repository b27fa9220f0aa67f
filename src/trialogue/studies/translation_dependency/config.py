"""Settings of the study: sentences whose laws are listed, and networks that learn a made-up language."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from trialogue.data.hidden_markov import HiddenMarkov
from trialogue.data.translation_language import TranslationLanguage, phrases_of_lengths, translation_law
from trialogue.ledger.settings import (
    Count,
    Increasing,
    Probability,
    Seeds,
    Settings,
    Share,
    Some,
)
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig

NonNegative = Annotated[float, Interval(ge=0, le=100)]
SLIPS = 0.001
"""The share of target tokens that are none of the chosen phrase: without them most sequences could not occur."""
CONDITIONALS, DENOISER = "conditionals", "denoiser"
TWIN, ONE_STAGE, TWO_STAGES, DISTILLED = (
    "twin",
    "refiner, S = 1",
    "refiner, S = 2",
    "refiner, S = 2, distilled",
)
"""What is trained, each from every seed."""
REFINERS = (ONE_STAGE, TWO_STAGES, DISTILLED)


@dataclass(frozen=True, kw_only=True)
class Sentence(Settings):
    """A source sentence by what its translations depend through: `words` are the lengths of each word's two synonyms.

    Words trade places with probability `swapping`. `name` is how tables call it.
    """

    name: str
    words: Some[tuple[Count, Count]]
    swapping: Share = 0.0

    @property
    def pattern(self) -> str:
        """The lengths of the synonyms, word by word."""
        return " ".join(f"{first}|{second}" for first, second in self.words)

    @property
    def longest(self) -> int:
        """Tokens of the longest translation."""
        return sum(max(word) for word in self.words)

    def law(self, coupling: float) -> HiddenMarkov:
        """The law of its translations at a coupling J."""
        phrases = phrases_of_lengths(self.words)
        return translation_law(phrases, coupling=coupling, swapping=self.swapping, slips=SLIPS)

    def alike(self) -> HiddenMarkov:
        """The law of a teacher's translations that are always made of the first synonyms, in order."""
        law, phrases = self.law(0.0), phrases_of_lengths(self.words)
        first = [word[:1] for word in phrases]
        return translation_law(first, coupling=0.0, slips=SLIPS, vocab_size=law.vocab_size)

    def clean(self, coupling: float) -> HiddenMarkov:
        """The law without slips, which says what a translation is."""
        phrases = phrases_of_lengths(self.words)
        return translation_law(phrases, coupling=coupling, swapping=self.swapping)


STYLES = Sentence(name="styles", words=((1, 1),) * 4)
PHRASES = Sentence(name="phrases", words=((2, 2), (2, 2)))
LENGTHS = Sentence(name="lengths", words=((1, 2), (2, 1)))
ORDER = Sentence(name="order", words=((1, 1),) * 3, swapping=0.2)
ALL = Sentence(name="all of them", words=((1, 2), (2, 1), (1, 1)), swapping=0.2)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Exact laws of `sentences` at `couplings` after up to `passes` passes; one network of each kind per seed.

    Chains that take single sites and pairs of them run on those sentences whose alphabets have at most `chain_states`
    sequences, at `chain_coupling`, for `chain_passes`. The perfect denoiser is told that a share `correct` of the
    tokens is right, as the refiners are in training.

    Networks of `shape` learn the language of `words` words with `coupling`, `swapping` and `expanding` from `pairs`
    pairs of `source_lengths` words, in `training_steps` steps on batches of `batch_size`. They translate `sources`
    sentences of `test_lengths` words; their laws are listed on `listed` sentences of `listed_words` words each.
    """

    sentences: Some[Sentence] = (STYLES, PHRASES, LENGTHS, ORDER, ALL)
    couplings: Increasing[NonNegative] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    passes: Count = 10
    correct: Probability = 0.15
    among: Count = 160
    chain_states: Count = 4096
    chain_coupling: NonNegative = 2.0
    chain_passes: Count = 40
    seeds: Seeds = tuple(range(5))
    words: Count = 40
    coupling: NonNegative = 2.0
    swapping: Share = 0.2
    expanding: Share = 0.5
    source_lengths: tuple[Count, Count] = (2, 10)
    test_lengths: tuple[Count, Count] = (6, 10)
    pairs: Count = 20_000
    width: Count = 64
    layers: Count = 2
    training_steps: Count = 3000
    batch_size: Count = 64
    sources: Count = 500
    listed: Count = 6
    listed_words: Count = 2
    tested_passes: Increasing[Count] = (1, 2, 4, 10)

    def language(self, synonyms: int = 2) -> TranslationLanguage:
        """The language that is learned, or the one in which every sentence is translated alike."""
        return TranslationLanguage(
            words=self.words,
            coupling=self.coupling,
            swapping=self.swapping if synonyms == 2 else 0.0,
            expanding=self.expanding,
            slips=SLIPS,
            synonyms=synonyms,
        )

    def shape(self, causal: bool) -> EncoderDecoderConfig:
        """Of the twin, or of a refiner of equal size."""
        return EncoderDecoderConfig(
            vocab_size=self.language().vocab_size,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            heads=4,
            width=self.width,
            mlp_width=4 * self.width,
            max_length=2 * self.source_lengths[1],
            causal=causal,
            positional_attention=not causal,
        )
