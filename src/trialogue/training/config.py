"""How a network is trained: every number of the recipe, and the schedules as functions of the step."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from trialogue.errors import (
    non_negative_number,
    one_of,
    positive_number,
    probability,
    truth_value,
    whole_number,
)

Schedule = Literal["cosine", "linear", "constant"]
Average = Literal["none", "constant", "power"]


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a network is trained. Raises `InputError` where a field is out of range.

    The learning rate rises linearly over `warmup_steps`, then follows `schedule` down to zero at `steps`. Weight
    decay is that of AdamW, on matrices only. `gradient_clip` bounds the norm of the whole gradient; None does not.
    `ema`: "constant" averages the weights with `ema_decay`; "power" with `ema_decay` during the warm-up and
    1 - max((step + 1) ** -ema_power, ema_floor) after it (Block et al. 2024). `bf16` None means where the GPU can.
    `seed` names the random numbers that the loss or the network draw; the batches have their own.
    """

    steps: int
    batch_size: int
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.95
    warmup_steps: int = 100
    schedule: Schedule = "cosine"
    gradient_clip: float | None = 1.0
    ema: Average = "none"
    ema_decay: float = 0.999
    ema_power: float = 0.67
    ema_floor: float = 0.001
    seed: int = 0
    bf16: bool | None = None
    checkpoint_every: int = 500
    log_every: int = 50

    def __post_init__(self) -> None:
        for field in ("steps", "batch_size", "checkpoint_every", "log_every"):
            whole_number(field, getattr(self, field), 1)
        for field in ("warmup_steps", "seed"):
            whole_number(field, getattr(self, field), 0)
        for field in ("learning_rate", "ema_power"):
            positive_number(field, getattr(self, field))
        non_negative_number("weight_decay", self.weight_decay)
        for field in ("beta_1", "beta_2", "ema_decay", "ema_floor"):
            probability(field, getattr(self, field), one=False, mend="must be in [0, 1)")
        if self.gradient_clip is not None:
            positive_number("gradient_clip", self.gradient_clip)
        one_of("schedule", self.schedule, get_args(Schedule))
        one_of("ema", self.ema, get_args(Average))
        if self.bf16 is not None:
            truth_value("bf16", self.bf16)

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of step 0, 1, ..., steps - 1."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        left = (self.steps - step) / max(self.steps - self.warmup_steps, 1)
        factor = {"cosine": (1 - math.cos(math.pi * left)) / 2, "linear": left, "constant": 1.0}[
            self.schedule
        ]
        return self.learning_rate * factor

    def ema_decay_at(self, step: int) -> float:
        """How much of the averaged weights is kept after step 0, 1, ..., steps - 1; 0 without averaging."""
        if self.ema == "none":
            return 0.0
        if self.ema == "constant" or step < self.warmup_steps:
            return self.ema_decay
        return 1 - max((step + 1) ** -self.ema_power, self.ema_floor)
