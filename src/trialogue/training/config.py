"""How a network is trained: every number of the recipe, and the schedules as functions of the step."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from trialogue.errors import (
    InputError,
    non_negative_number,
    one_of,
    positive_number,
    probability,
    truth_value,
    whole_number,
)

Schedule = Literal["cosine", "linear", "constant"]
Average = Literal["none", "constant", "power"]
OptimizerName = Literal["adamw", "muon", "sgd", "adafactor"]


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

    steps: int
    batch_size: int
    optimizer: OptimizerName = "adamw"
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.95
    momentum: float = 0.0
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
        for field in ("beta_1", "beta_2", "momentum", "ema_decay", "ema_floor"):
            probability(field, getattr(self, field), one=False, hint="must be in [0, 1)")
        if self.gradient_clip is not None:
            positive_number("gradient_clip", self.gradient_clip)
        one_of("schedule", self.schedule, get_args(Schedule))
        one_of("optimizer", self.optimizer, get_args(OptimizerName))
        if self.momentum and self.optimizer != "sgd":
            raise InputError("momentum", self.momentum, "only SGD has one: leave it out")
        one_of("ema", self.ema, get_args(Average))
        if self.bf16 is not None:
            truth_value("bf16", self.bf16)

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
