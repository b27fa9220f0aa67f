"""Settings of the study and its presets."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Ge
from torch import Tensor

from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.models.networks.transformer import TransformerConfig
from trialogue.randomness import derive_seed
from trialogue.training.config import TrainingConfig
from trialogue_lab.ledger import Count, Natural, Positive, Probability, Seeds, Settings, Share

STRIDES_FORCED = (1, 2, 4, 8)
QUOTAS, STRIDES = (1, 2, 4), (2, 4, 6)
CLUSTERS = (2, 8)
BATCHES = {1: 40, 32: 320, 1024: 1024}
"""Batch sizes of the measurements of time, with the number of completed prompts."""
CANDIDATES = 4


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    For each seed, a language model is trained on strings of square and round brackets. A probe is then trained, which
    classifies the model's hidden states into correct and erroneous prefixes. The probe is the verifier of backtracking,
    a sampler that erases the last tokens of rejected prefixes.

    Args:
        seeds: Seeds of the trainings.
        length: Length of the strings, an even number.
        p: Probability that an opening bracket of a training string is square.
        q: Probability that the next bracket is an opening one, if a closing one is also possible.
        ood_p: Probability that an opening bracket of a prompt is square.
        prompt_lengths: Smallest and largest length of a prompt, in tokens.
        layers: Number of layers of the language models.
        heads: Number of attention heads.
        width: Width of the residual stream.
        mlp_width: Width of the MLPs.
        steps: Number of training steps.
        batch_size: Batch size of the training.
        learning_rate: Learning rate.
        weight_decay: Weight decay.
        beta_2: Decay rate of the optimizer's second moments.
        warmup_steps: Number of warmup steps.
        schedule: Learning rate schedule.
        ema: Kind of exponential moving average of the weights. The thesis uses "power".
        probe_errors: Number of erroneous prefixes on which the probe is trained. It is also trained on as many correct
            ones.
        inducing_errors: Number of further erroneous prefixes. The model completes them again without their wrong last
            token.
        max_prompts: Largest number of prompts that are completed to find errors.
        probe_repetitions: Number of random splits into training and validation examples. One probe is trained for each.
        threshold: A prefix is rejected if the probe gives it a lower probability of being correct.
        low_threshold: A second, lower value of `threshold`.
        unseen_prompts: Number of new prompts that every decoding method completes.
        draws: Number of completions per new prompt and decoding method.
        diversity_prompts: Number of prompts for which distinct completions are counted.
        completions: Number of completions of each of these prompts.
    """

    seeds: Seeds = tuple(range(8))
    length: Annotated[int, Ge(2)] = 32
    p: Probability = 0.2
    q: Probability = 0.5
    ood_p: Probability = 0.8
    prompt_lengths: tuple[Count, Count] = (25, 31)
    layers: Count = 2
    heads: Count = 4
    width: Count = 64
    mlp_width: Count = 256
    steps: Count = 2400
    batch_size: Count = 32
    learning_rate: Positive = 3e-3
    weight_decay: float = 0.1
    beta_2: Share = 0.99
    warmup_steps: Natural = 100
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    ema: Literal["none", "constant", "power"] = "none"
    probe_errors: Annotated[int, Ge(10)] = 441
    inducing_errors: Count = 164
    max_prompts: Count = 200_000
    probe_repetitions: Count = 10
    threshold: Share = 0.5
    low_threshold: Share = 0.1
    unseen_prompts: Count = 2000
    draws: Count = 2
    diversity_prompts: Annotated[int, Ge(2)] = 100
    completions: Count = 10

    def check(self) -> None:
        """Raise `InputError` if fields contradict each other.

        Raises:
            InputError: If strings have an odd length, if prompts are too short or too long, or if the model or its
                training cannot be configured.
        """
        if self.length % 2:
            raise InputError("length", self.length, "must be an even number")
        first, last = self.prompt_lengths
        if not max(STRIDES_FORCED) <= first <= last < self.length:
            hint = f"must be an increasing range within {max(STRIDES_FORCED)}..{self.length - 1}"
            raise InputError("prompt_lengths", self.prompt_lengths, hint)
        self.model()
        self.training(0)

    def model(self) -> TransformerConfig:
        """Return the architecture of the language models, which predict the next bracket."""
        return TransformerConfig(vocab_size=4, max_length=self.length, **self.shared(TransformerConfig))

    def training(self, seed: int) -> TrainingConfig:
        """Return the training settings of a language model.

        Args:
            seed: Seed of the training.
        """
        shared = self.shared(TrainingConfig) | {"warmup_steps": min(self.warmup_steps, self.steps)}
        return TrainingConfig(**shared, seed=seed)

    def training_distribution(self) -> Dyck:
        """Return the distribution of bracket strings on which the language models are trained.

        An opening bracket is square with probability `p`, and round otherwise.
        """
        return Dyck(self.length, (self.p, 1 - self.p), self.q)

    def prompt_distribution(self) -> Dyck:
        """Return the distribution of bracket strings from which prompts are sampled.

        It differs from the distribution of training strings: an opening bracket is square with probability `ood_p`, and
        round otherwise.
        """
        return Dyck(self.length, (self.ood_p, 1 - self.ood_p), self.q)

    def sample_prompts(self, n: int, seed: int, stream: str) -> tuple[Tensor, Tensor]:
        """Sample prompts, which are beginnings of bracket strings from `prompt_distribution`.

        Args:
            n: Number of prompts.
            seed: Seed of the training.
            stream: Name of the random stream. Different names give independent prompts.

        Returns:
            Token ids (n, width) and lengths (n,) of the prompts.
        """
        distribution = self.prompt_distribution()
        return distribution.sample_prompts(n, self.prompt_lengths, derive_seed(seed, "prompts", stream))


@dataclass(frozen=True, kw_only=True)
class EarlyStoppingConfig(Config):
    """Settings of a run in which a training ends as soon as the model is accurate.

    A training ends after at most `steps` steps.

    Args:
        converged_accuracy: Accuracy on the closing brackets of the validation strings at which a training ends.
        validation_strings: Number of validation strings, sampled from the training distribution.
        look_every: Number of steps between validations.
    """

    converged_accuracy: Share = 0.9995
    validation_strings: Count = 2048
    look_every: Count = 250


_NIGHT = EarlyStoppingConfig(
    seeds=tuple(range(40)),
    steps=12_000,
    schedule="constant",
    ema="power",
    max_prompts=2_000_000,
    unseen_prompts=4000,
)

PRESETS = {
    "smoke": Config(
        seeds=(0,),
        width=32,
        mlp_width=64,
        steps=30,
        probe_errors=20,
        inducing_errors=10,
        max_prompts=4000,
        probe_repetitions=2,
        unseen_prompts=60,
        draws=1,
        diversity_prompts=4,
        completions=3,
    ),
    "pilot": replace(_NIGHT, seeds=tuple(range(100, 106))),
    "default": Config(),
    "night": _NIGHT,
    # The size follows from the rows of `night`, so that a claim with the same effect is decided with a power of 0.8.
    # The seeds are new.
    "weekend": replace(_NIGHT, seeds=tuple(range(200, 311))),
    "paper": Config(
        layers=6,
        heads=8,
        width=512,
        mlp_width=1024,
        steps=9375,
        learning_rate=3e-4,
        beta_2=0.999,
        schedule="linear",
        ema="power",
        max_prompts=400_000,
        unseen_prompts=10_000,
        draws=5,
    ),
}
