"""Settings of the study: sentences whose laws are listed, and networks that learn a made-up language."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Increasing, Probability, Seeds, Settings, Share, Some
from trialogue_lab.studies.translation_dependency.hidden_markov import HiddenMarkov
from trialogue_lab.studies.translation_dependency.language import (
    SPECIAL,
    TranslationLanguage,
    phrases_of_lengths,
    translation_law,
)

Coupling = Annotated[float, Interval(ge=0, le=100)]
SLIPS = 0.001
"""The share of target tokens that are none of the chosen phrase: without them most sequences could not occur."""
CONDITIONALS, DENOISER = "conditionals", "denoiser"
TWIN, ONE_STAGE, TWO_STAGES = "twin", "refiner, S = 1", "refiner, S = 2"
DETERMINISTIC = "refiner, S = 2, deterministic lexicon"
ARMS = (TWIN, ONE_STAGE, TWO_STAGES, DETERMINISTIC)
"""What is trained, each from every seed."""
REAL_TEXT = "named translator"


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

    @property
    def states(self) -> int:
        """Sequences of the tokens of its alphabet that are as long."""
        return sum(map(sum, self.words)) ** self.longest

    def law(self, coupling: float, slips: float = SLIPS) -> HiddenMarkov:
        """Return the distribution of its translations at a coupling J. Without slips it says what a translation is."""
        phrases = phrases_of_lengths(self.words)
        return translation_law(phrases, coupling=coupling, swapping=self.swapping, slips=slips)

    def alike(self) -> HiddenMarkov:
        """The law of a teacher's translations that are always made of the first synonyms, in order."""
        first = [word[:1] for word in phrases_of_lengths(self.words)]
        return translation_law(first, coupling=0.0, slips=SLIPS, vocab_size=sum(map(sum, self.words)))


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
    tokens is right and the others are uniform over the language's, as they are in training.

    Networks learn the language of `words` words with `coupling`, `swapping` and `expanding` from `pairs` pairs of
    `source_lengths` words. They translate `sources` sentences of `test_lengths` words; their laws are listed on
    `listed` sentences of `listed_words` words, from `starts` random targets each. Attention is looked at in the pass
    `attended_pass`; also in a translator that `trialogue train-translation` wrote to the folder `model`, where one is
    named, on the sources in `columns` of the table `text`.
    """

    sentences: Some[Sentence] = (STYLES, PHRASES, LENGTHS, ORDER, ALL)
    couplings: Increasing[Coupling] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    passes: Count = 10
    correct: Probability = 0.15
    chain_states: Count = 4096
    chain_coupling: Coupling = 2.0
    chain_passes: Count = 40
    seeds: Seeds = tuple(range(4))
    words: Count = 16
    coupling: Coupling = 2.0
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
        """Raise `InputError` where fields do not go together."""
        if not {1, 4, 10} <= set(self.tested_passes):
            raise InputError("tested_passes", self.tested_passes, "1, 4 and 10 must be among them")
        if self.width % self.heads:
            raise InputError("width", self.width, f"must be a multiple of heads={self.heads}")
        if bool(self.model) != bool(self.text):
            raise InputError("text", self.text, "name a model and a text to translate, or neither")
        for field in ("source_lengths", "test_lengths"):
            least, most = getattr(self, field)
            if not least <= most <= self.words:
                raise InputError(field, (least, most), f"use two sizes up to words={self.words}")
        if self.test_lengths[1] > self.source_lengths[1]:
            raise InputError("test_lengths", self.test_lengths, "test on lengths that are learned")

    @property
    def longest(self) -> int:
        """Tokens of the longest target."""
        return 2 * self.source_lengths[1]

    @property
    def among(self) -> int:
        """Tokens that the noise of the language's refiners is drawn from."""
        return self.language().vocab_size - SPECIAL

    def language(self, synonyms: int = 2) -> TranslationLanguage:
        """The language that is learned, or the one in which every sentence is translated alike."""
        settings = self.shared(TranslationLanguage) | {"slips": SLIPS, "synonyms": synonyms}
        return TranslationLanguage(**settings | ({} if synonyms == 2 else {"swapping": 0.0}))


PRESETS = {
    "smoke": Config(
        sentences=(LENGTHS, ORDER),
        couplings=(0.0, 2.0),
        passes=4,
        chain_states=300,
        chain_passes=4,
        seeds=(0, 1),
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
    # On a seed of the pilot, 32 % of the translations of the two-stage refiner are valid after 6,000 steps. The claims
    # on stutter need more than half.
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
