"""Settings of the study: the laws, and how the networks are trained on them."""

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, Interval
from pydantic import AfterValidator

from trialogue.training.config import TrainingConfig
from trialogue.validation import different
from trialogue_lab.ledger import Count, Natural, Positive, Seeds, Settings

DEPTHS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Every seed is one law of four bodies with networks of one, two and three layers, and one law of two bodies.

    Small laws, of `sites` tokens of `vocab_size` values, are trained on whole, without samples. Of four bodies those
    are taken whose bounds by two, three and four bodies are `gap` nats apart.
    """

    seeds: Seeds = tuple(range(1, 25))
    sites: Annotated[int, Interval(ge=5, le=7)] = 5
    vocab_size: Annotated[int, Interval(ge=2, le=4)] = 3
    rank: Count = 20
    scale: Positive = 2.0
    """The standard deviation of energies over uniform sequences."""
    gap: Positive = 0.05
    starts: tuple[Count, Count] = (5, 3)
    """From how many starts the bounds of two and three bodies are sought."""
    steps: tuple[Count, Count, Count] = (1500, 8000, 8000)
    """Steps of training with one, two and three layers."""
    learning_rate: Positive = 0.05
    momentum: Annotated[float, Interval(ge=0, lt=1)] = 0.9
    clip: Positive = 0.1
    """Of the norm of the gradient: squares diverge without it."""
    initial_scale: Positive = 0.15
    pair_steps: Count = 1000
    """Steps with which one factored and one standard layer learn two bodies."""
    spectrum_sites: Annotated[int, Interval(ge=10, le=16)] = 12
    large_seeds: Annotated[tuple[Natural, ...], AfterValidator(different)] = (1,)
    """Laws of the size that the document uses, sampled; none where there are none."""
    large_sites: Annotated[int, Ge(5)] = 20
    large_vocab_size: Annotated[int, Ge(2)] = 10
    large_rank: Count = 20
    large_sequences: Count = 25_600
    large_sweeps: Count = 50
    large_steps: Annotated[int, Ge(40)] = 10_000
    large_rate: Positive = 0.1
    large_scale: Positive = 0.3
    """Initial weights there, as `initial_scale` on the small laws."""
    large_batch: Count = 256

    def training(self, layers: int, rows: int, seed: int) -> TrainingConfig:
        """How a network of so many layers is trained on a whole law of `rows` masked sequences."""
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
        """How a network of so many layers is trained on samples of a large law; one layer takes a quarter of it."""
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
    # On seeds that no other preset has, as many laws as the claim of two layers needs for a power of 0.8.
    "night": Config(seeds=tuple(range(2001, 2321)), large_seeds=(2001, 2002), large_steps=60_000),
    "paper": Config(seeds=tuple(range(1, 101)), large_seeds=(1, 2, 3, 4), large_steps=60_000, large_rank=200),
}
