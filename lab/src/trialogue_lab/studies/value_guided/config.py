"""Settings of the study: random trees, long horizons, and models of Dyck strings."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Ge, Gt, Interval

from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.models.networks.transformer import TransformerConfig
from trialogue.training.config import TrainingConfig
from trialogue_lab.ledger import Count, Different, Increasing, Positive, Probability, Seeds, Settings

EXACT: Final = "exact"
LAST_TOKEN: Final = "last token"
SIGNS: Final = "uniform"
KINDS: tuple[Literal["exact", "last token", "uniform"], ...] = (EXACT, LAST_TOKEN, SIGNS)
"""Errors of values: none, a factor that depends on the last token, or a factor with a random direction."""


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Samplers are guided by values. The value of a prefix is the expected outcome of its completions. The horizon is the
    length of a sequence.

    Args:
        seeds: Seeds of the random models, which determine probabilities, outcomes and signs of errors.
        chain_seeds: Seeds of the models for which the random walk on prefixes is also computed from its transition
            matrix.
        horizons: Horizons of the random models. All prefixes are enumerated.
        errors: Sizes e of errors. An approximate value differs from the exact value by a factor of at most 1 + e.
        long_horizons: Horizons that are too long for enumeration.
        draw_seeds: Seeds of independent sets of outputs at long horizons.
        draws: Number of outputs in each set.
        tilt: Parameter of the outcome at long horizons, with a factor 1 + tilt per token 0 and 1 - tilt per token 1.
        training_seeds: Seeds of the models of Dyck strings (balanced brackets).
        length: Length of the Dyck strings.
        steps: Number of training steps of these models.
        rollouts: Number of training examples of the values. Each is one prefix of the completion of another prompt.
        prompts: Number of prompts on which all samplers are measured.
        remaining: Smallest and largest number of tokens that are missing after a prompt.
        outputs: Number of outputs per prompt, for each sampler whose distribution is estimated from outputs.
    """

    seeds: Seeds = tuple(range(1, 13))
    chain_seeds: Seeds = (1, 2)
    horizons: Increasing[Annotated[int, Ge(2)]] = (2, 4, 6, 8, 10)
    errors: Different[Positive] = (0.3, 1.0)
    long_horizons: Increasing[Annotated[int, Gt(2)]] = (8, 12, 16, 24, 32)
    draw_seeds: Seeds = tuple(range(1, 9))
    draws: Count = 200
    tilt: Probability = 0.3
    training_seeds: Seeds = tuple(range(1, 9))
    length: Annotated[int, Ge(8)] = 16
    steps: Count = 400
    rollouts: Annotated[int, Ge(100)] = 3000
    prompts: Count = 12
    remaining: tuple[Annotated[int, Interval(ge=2, le=5)], Annotated[int, Interval(ge=2, le=5)]] = (3, 5)
    outputs: Count = 300

    def check(self) -> None:
        """Raise `InputError` if fields contradict each other."""
        if not set(self.chain_seeds) <= set(self.seeds):
            raise InputError("chain_seeds", self.chain_seeds, "use a subset of seeds")
        if self.remaining[0] > self.remaining[1]:
            raise InputError("remaining", self.remaining, "put the smaller number first")
        self.training_distribution()

    def training_distribution(self) -> Dyck:
        """Return the distribution of balanced brackets (Dyck strings) on which the models are trained."""
        return Dyck(self.length, (0.2, 0.8), 0.5)

    def prompt_distribution(self) -> Dyck:
        """Return the distribution that prompts are sampled from."""
        return Dyck(self.length, (0.8, 0.2), 0.5)

    def model(self) -> TransformerConfig:
        """Return the architecture of the models."""
        return TransformerConfig(
            vocab_size=4, layers=2, heads=4, width=32, mlp_width=128, max_length=self.length
        )

    def training(self, seed: int) -> TrainingConfig:
        """Return the training settings of the model of Dyck strings (balanced brackets).

        Args:
            seed: Seed of the training.
        """
        return TrainingConfig(
            steps=self.steps,
            batch_size=32,
            learning_rate=3e-3,
            warmup_steps=min(50, self.steps),
            schedule="cosine",
            seed=seed,
        )


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        chain_seeds=(0,),
        horizons=(2, 4, 6),
        long_horizons=(4, 6),
        draw_seeds=(0, 1),
        draws=100,
        training_seeds=(0, 1),
        length=8,
        steps=60,
        rollouts=200,
        prompts=3,
        remaining=(5, 5),
        outputs=40,
    ),
    "pilot": Config(
        seeds=tuple(range(1000, 1004)),
        chain_seeds=(1000,),
        draw_seeds=tuple(range(1000, 1003)),
        training_seeds=tuple(range(1000, 1003)),
    ),
    "default": Config(),
    "night": Config(
        seeds=tuple(range(1, 101)),
        draw_seeds=tuple(range(1, 21)),
        draws=2000,
        training_seeds=tuple(range(1, 21)),
    ),
}
