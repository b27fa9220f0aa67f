"""How a network is trained: every number of the recipe, and the schedules as functions of the step."""

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from annotated_types import Interval

from trialogue.errors import InputError
from trialogue.validation import Count, Natural, NonNegative, Positive, validated

OptimizerName = Literal["adamw", "muon", "sgd", "adafactor"]
Decay = Annotated[float, Interval(ge=0, lt=1)]
"""A number of at least 0 and below 1."""


@validated
@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a network is trained. Raises `InputError` where a field is out of range.

    The learning rate rises linearly over `warmup_steps`, then follows `schedule` down to zero at `steps`. `beta_1` and
    `beta_2` are those of AdamW, `momentum` is that of SGD. Muon (Jordan et al. 2024) moves the matrices of hidden
    layers, and AdamW all else, at the same rate. Adafactor is that of Shazeer and Stern (2018): an update is relative
    to the weights' root mean square, at a rate of at most 1 / sqrt(step). Weight decay is on matrices only: decoupled
    with AdamW, Muon and Adafactor, part of the gradient with SGD. `gradient_clip` bounds the norm of the whole
    gradient; None does not. `ema`: "constant" averages the weights with `ema_decay`; "power" with `ema_decay` during
    the warm-up and 1 - max((step + 1) ** -ema_power, ema_floor) after it (Block et al. 2024). `bf16` None means where
    the GPU can.
    `seed` names the random numbers that the loss or the network draw; the batches have their own.
    """

    steps: Count
    batch_size: Count
    optimizer: OptimizerName = "adamw"
    learning_rate: Positive = 3e-3
    weight_decay: NonNegative = 0.1
    beta_1: Decay = 0.9
    beta_2: Decay = 0.95
    momentum: Decay = 0.0
    warmup_steps: Natural = 100
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    gradient_clip: Positive | None = 1.0
    ema: Literal["none", "constant", "power"] = "none"
    ema_decay: Decay = 0.999
    ema_power: Positive = 0.67
    ema_floor: Decay = 0.001
    seed: Natural = 0
    bf16: bool | None = None
    checkpoint_every: Count = 500
    log_every: Count = 50

    def __post_init__(self) -> None:
        if self.momentum and self.optimizer != "sgd":
            raise InputError("momentum", self.momentum, "only SGD has one: leave it out")

    def trajectory(self) -> dict[str, Any]:
        """The fields that decide what is learned, which how often to save and to log does not."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ("checkpoint_every", "log_every")
        }

    def learning_rate_at(self, step: int, peak: float | None = None) -> float:
        """Learning rate of step 0, 1, ..., steps - 1, where the largest is `peak`, by default `learning_rate`."""
        peak = self.learning_rate if peak is None else peak
        if step < self.warmup_steps:
            return peak * (step + 1) / self.warmup_steps
        left = (self.steps - step) / max(self.steps - self.warmup_steps, 1)
        factor = {"cosine": (1 - math.cos(math.pi * left)) / 2, "linear": left, "constant": 1.0}[
            self.schedule
        ]
        return peak * factor

    def ema_decay_at(self, step: int) -> float:
        """How much of the averaged weights is kept after step 0, 1, ..., steps - 1; 0 without averaging."""
        if self.ema == "none":
            return 0.0
        if self.ema == "constant" or step < self.warmup_steps:
            return self.ema_decay
        return 1 - max((step + 1) ** -self.ema_power, self.ema_floor)
