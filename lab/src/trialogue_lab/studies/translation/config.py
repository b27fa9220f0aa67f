"""Settings of the study: the text, the networks and the measurements."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

from annotated_types import Ge, Lt

from trialogue.errors import InputError
from trialogue.training.config import OptimizerName
from trialogue.training.translation.recipes import TranslationTraining
from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings
from trialogue_lab.studies.translation.hub_pairs import HUB_PAIRS

TWIN, REFINER, MASK_PREDICT = "twin", "refiner", "mask-predict"
RESCORED = "refiner, rescored"
"""The refiner, with its candidate translations ranked by the twin in one more pass."""
PLAIN, ONE_STAGE, LITTLE_NOISE = "two stages", "one stage", "half correct"
MASKS, NO_POSITIONS, DISTILLED = "masks", "no positional attention", "distilled"
SMALL = (PLAIN, ONE_STAGE, LITTLE_NOISE, MASKS, NO_POSITIONS, DISTILLED)
"""Refiners with fewer training updates. All but the first differ from it in one setting of the training.

`MASKS` also starts refinement from masks.
"""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    The twin is an autoregressive translator. A refiner predicts all target tokens in parallel and revises them in
    several steps. It tries several target lengths, called hypotheses. Several small refiners compare training settings.

    Args:
        seeds: Seeds of the split, the initial weights and the batches. Each seed trains one network of each kind.
        text: Table of pairs, relative to the working directory, or a corpus of the hub: wmt14-de-en, wmt16-ro-en,
            wmt17-zh-en, or the reverse directions. Empty for generated pairs, for tests.
        columns: Columns of the source and of the target, counted from 1.
        vocab_size: Number of tokens of the vocabulary.
        test: Number of test sentences.
        validation: Number of validation sentences.
        sets: Number of sets that the test sentences are divided into. Each set is one replication.
        layers: Number of layers of the encoder and of the decoder.
        heads: Number of attention heads.
        width: Width of the residual stream.
        max_length: Maximum number of tokens of a sentence.
        batch_size: Number of pairs of a batch.
        optimizer: Name of the optimizer.
        learning_rate: Peak learning rate.
        bf16: Whether to train in bfloat16. Translations are computed in float32.
        twin_steps: Number of updates of the twin.
        refiner_steps: Number of updates of the refiner, and also of the refiner that is trained like mask-predict.
        dropout: Dropout probability of the twin and of these two refiners. Small refiners use no dropout, because they
            see no pair twice.
        small_steps: Number of updates of the small refiners, which compare training settings.
        small_pairs: Number of training pairs of the small refiners.
        small_sets: Number of sets of test sentences that the small refiners translate.
        steps: Numbers of refinement steps.
        hypotheses: Numbers of hypotheses of the target length.
        alpha: Exponent of the length penalty that ranks candidates.
        beams: Beam size of the twin, which also translates greedily.
        timed: Number of test sentences whose latency is measured in a round. Equally many long sentences are also
            timed, if there are enough.
        long: Minimum number of tokens of a long reference, including the end of the sequence.
        rounds: Number of rounds of latency measurements.
    """

    seeds: Seeds = (2,)
    text: str = "tatoeba/deu-eng.tsv"
    columns: tuple[Count, Count] = (2, 1)
    vocab_size: Annotated[int, Ge(261)] = 4000
    test: Count = 2000
    validation: Count = 1000
    sets: Annotated[int, Ge(2)] = 20
    layers: Count = 2
    heads: Count = 4
    width: Count = 256
    max_length: Annotated[int, Ge(8)] = 64
    batch_size: Count = 128
    optimizer: OptimizerName = "muon"
    learning_rate: Positive = 4e-3
    bf16: bool = True
    twin_steps: Count = 6000
    refiner_steps: Count = 5000
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    small_steps: Count = 400
    small_pairs: Count = 51_200
    small_sets: Count = 10
    steps: Increasing[Count] = (1, 2, 4, 10)
    hypotheses: Increasing[Count] = (1, 3, 5)
    alpha: Annotated[float, Ge(0)] = 0.6
    beams: Annotated[int, Ge(2)] = 5
    timed: Count = 200
    long: Count = 20
    rounds: Annotated[int, Ge(2)] = 5

    def check(self) -> None:
        """Raise `InputError` if fields are inconsistent."""
        if self.test % self.sets:
            raise InputError("sets", self.sets, f"use a divisor of test={self.test}")
        if self.small_sets > self.sets:
            raise InputError("small_sets", self.small_sets, f"use at most sets={self.sets}")
        if 4 not in self.steps:
            raise InputError("steps", self.steps, "include 4")
        self.of(TWIN, self.seeds[0])

    @property
    def tokenize(self) -> str:
        """Tokenizer of sacreBLEU: "zh" (by characters) for Chinese targets, and its default "13a" otherwise."""
        return "zh" if self.text in HUB_PAIRS and HUB_PAIRS[self.text].target == "zh" else "13a"

    def of(self, arm: str, seed: int) -> TranslationTraining:
        """Return the training settings of one network.

        Args:
            arm: Name of the network, for example "twin" for the autoregressive one, or "refiner" for one that predicts
                all tokens in parallel.
            seed: Seed of the training.
        """
        settings = self.shared(TranslationTraining) | {"steps": self.refiner_steps, "bf16": self.bf16 or None}
        common = TranslationTraining(**settings, mlp_width=4 * self.width, seed=seed)
        if arm in SMALL:
            common = replace(common, steps=self.small_steps, dropout=0.0)
        differing: dict[str, dict[str, Any]] = {
            TWIN: {"steps": self.twin_steps},
            MASK_PREDICT: {"stages": 1, "correct": None, "masked": 1.0},
            ONE_STAGE: {"stages": 1},
            LITTLE_NOISE: {"correct": 0.5},
            MASKS: {"masked": 1.0},
            NO_POSITIONS: {"positional_attention": False},
        }
        return replace(common, **differing.get(arm, {}))


PRESETS = {
    "smoke": Config(
        seeds=(0,),
        text="",
        columns=(1, 2),
        vocab_size=280,
        test=40,
        validation=10,
        sets=4,
        layers=1,
        heads=2,
        width=16,
        max_length=40,
        batch_size=32,
        optimizer="adamw",
        learning_rate=2e-3,
        bf16=False,
        twin_steps=30,
        refiner_steps=30,
        small_steps=10,
        small_pairs=200,
        small_sets=2,
        steps=(1, 4, 10),
        hypotheses=(1, 5),
        beams=2,
        timed=3,
        long=8,
        rounds=2,
    ),
    "pilot": Config(
        seeds=(100,),
        twin_steps=300,
        refiner_steps=300,
        small_steps=120,
        small_pairs=15_360,
        test=400,
        validation=200,
        sets=10,
        small_sets=4,
        hypotheses=(1, 5),
        steps=(1, 4, 10),
        timed=20,
        rounds=3,
    ),
    "default": Config(),
    "night": Config(
        seeds=(3,),
        dropout=0.2,
        twin_steps=12_000,
        refiner_steps=7000,
        small_steps=1200,
        small_pairs=160_000,
        small_sets=20,
        rounds=9,
    ),
    "paper": Config(
        seeds=(1, 2, 3),
        text="wmt14-de-en",
        columns=(1, 2),
        vocab_size=32_000,
        layers=6,
        heads=8,
        width=512,
        max_length=128,
        test=3000,
        batch_size=2048,
        optimizer="adamw",
        learning_rate=3e-3,
        twin_steps=500_000,
        refiner_steps=500_000,
        small_steps=100_000,
        small_pairs=4_000_000,
        small_sets=20,
        rounds=9,
    ),
}
