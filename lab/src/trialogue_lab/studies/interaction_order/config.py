"""Settings of the study: the distributions, and the training of networks on them."""

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, Interval
from pydantic import AfterValidator

from trialogue.training.config import TrainingConfig
from trialogue.validation import require_distinct
from trialogue_lab.ledger import Count, Natural, Positive, Seeds, Settings

DEPTHS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Every seed gives two small random distributions of token sequences. In one, up to four tokens interact. Networks
    with one, two and three layers are trained on it. In the other, only pairs of tokens interact. These trainings use
    exact expectations instead of samples. Further networks are trained on samples of large distributions, which have
    the published size.

    Args:
        seeds: Seeds of the small distributions.
        sites: Number of tokens of a sequence.
        vocab_size: Number of values of a token.
        rank: Rank of the energy function of a distribution.
        scale: Standard deviation of the energy over uniformly random sequences.
        gap: Smallest difference in nats between the lowest possible losses with interactions of two, three and four
            tokens. Distributions with a smaller difference are discarded.
        starts: Numbers of random starts of the minimizations that compute these losses for two and three tokens.
        steps: Numbers of training steps of networks with one, two and three layers.
        learning_rate: Learning rate.
        momentum: Momentum.
        clip: Maximum norm of the gradient. Trainings diverge without it.
        initial_scale: Initial scale of the weights.
        pair_steps: Number of training steps of one layer on a distribution in which only pairs of tokens interact.
        spectrum_sites: Number of tokens of a sequence for computing the interaction orders of random networks.
        large_seeds: Seeds of the large distributions. Empty to omit them.
        large_sites: Number of tokens of a sequence in a large distribution.
        large_vocab_size: Number of values of a token in a large distribution.
        large_rank: Rank of the energy function of a large distribution.
        large_sequences: Number of training sequences sampled from a large distribution.
        large_sweeps: Number of sweeps of Gibbs sampling per training sequence.
        large_steps: Number of training steps on these sequences.
        large_rate: Learning rate on these sequences.
        large_scale: Initial scale of the weights of networks for large distributions.
        large_batch: Batch size on these sequences.
    """

    seeds: Seeds = tuple(range(1, 25))
    sites: Annotated[int, Interval(ge=5, le=7)] = 5
    vocab_size: Annotated[int, Interval(ge=2, le=4)] = 3
    rank: Count = 20
    scale: Positive = 2.0
    gap: Positive = 0.05
    starts: tuple[Count, Count] = (5, 3)
    steps: tuple[Count, Count, Count] = (1500, 8000, 8000)
    learning_rate: Positive = 0.05
    momentum: Annotated[float, Interval(ge=0, lt=1)] = 0.9
    clip: Positive = 0.1
    initial_scale: Positive = 0.15
    pair_steps: Count = 1000
    spectrum_sites: Annotated[int, Interval(ge=10, le=16)] = 12
    large_seeds: Annotated[tuple[Natural, ...], AfterValidator(require_distinct)] = (1,)
    large_sites: Annotated[int, Ge(5)] = 20
    large_vocab_size: Annotated[int, Ge(2)] = 10
    large_rank: Count = 20
    large_sequences: Count = 25_600
    large_sweeps: Count = 50
    large_steps: Annotated[int, Ge(40)] = 10_000
    large_rate: Positive = 0.1
    large_scale: Positive = 0.3
    large_batch: Count = 256

    def training(self, layers: int, rows: int, seed: int) -> TrainingConfig:
        """Return the training settings of a network on all sequences of a small distribution.

        Args:
            layers: Number of layers of the network.
            rows: Number of sequences with one masked token. Every step uses all of them.
            seed: Seed of the training.

        Returns:
            Settings of SGD with momentum at a constant learning rate.
        """
        return TrainingConfig(
            steps=self.steps[layers - 1],
            batch_size=rows,
            optimizer="sgd",
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            weight_decay=0.0,
            warmup_steps=0,
            schedule="constant",
            gradient_clip=self.clip,
            seed=seed,
            bf16=False,
        )

    def large_training(self, layers: int, seed: int) -> TrainingConfig:
        """Return the training settings of a network on samples of a large distribution.

        Args:
            layers: Number of layers of the network. Networks with one layer take a quarter of the steps.
            seed: Seed of the training.

        Returns:
            Settings of SGD with momentum and a cosine schedule.
        """
        return replace(
            self.training(layers, self.large_batch, seed),
            steps=self.large_steps // 4 if layers == 1 else self.large_steps,
            learning_rate=self.large_rate,
            schedule="cosine",
            gradient_clip=1.0,
        )


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        gap=0.01,
        starts=(2, 1),
        steps=(150, 150, 200),
        pair_steps=60,
        spectrum_sites=10,
        large_seeds=(0,),
        large_sites=6,
        large_vocab_size=3,
        large_sequences=512,
        large_sweeps=5,
        large_steps=40,
    ),
    "pilot": Config(seeds=tuple(range(1000, 1006)), large_seeds=(1000,)),
    "default": Config(),
    # New seeds, with enough distributions to decide the claims about three layers with a power of 0.8.
    "night": Config(seeds=tuple(range(2001, 2121)), large_seeds=(2001,)),
    "paper": Config(seeds=tuple(range(1, 101)), large_seeds=(1, 2, 3, 4), large_steps=60_000, large_rank=200),
}
