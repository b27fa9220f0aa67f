"""Hyperparameters of a training run, with the schedules of learning rate and weight averaging."""

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
    """Hyperparameters of a training run.

    Args:
        steps: Number of updates.
        batch_size: Rows per batch, summed over all processes.
        optimizer: "adamw", "muon" (Jordan et al. 2024), "sgd" or "adafactor" (Shazeer and Stern 2018). Muon
            updates the matrices of hidden layers, and AdamW updates all other parameters with the same
            learning rate. Adafactor scales updates by the root mean square of the weights, with a rate of at
            most 1 / sqrt(step).
        learning_rate: Peak learning rate, reached after the warm-up.
        weight_decay: Weight decay of matrices; vectors have none. It is added to the gradient for SGD, and
            decoupled for the other optimizers.
        beta_1: Decay of the first moment in AdamW.
        beta_2: Decay of the second moment in AdamW.
        momentum: Momentum of SGD.
        warmup_steps: Number of steps over which the learning rate rises linearly.
        schedule: Decay after the warm-up: "cosine" or "linear" to zero at `steps`, or "constant".
        gradient_clip: Maximum norm of the gradient. None disables clipping.
        ema: Exponential moving average of the weights: "none", "constant" with decay `ema_decay`, or "power"
            with decay `ema_decay` during the warm-up and 1 - max((step + 1) ** -ema_power, ema_floor)
            afterwards (Block et al. 2024).
        ema_decay: Decay of the average for "constant", and during the warm-up for "power".
        ema_power: Exponent of the "power" schedule.
        ema_floor: Lower bound of 1 - decay in the "power" schedule.
        seed: Seed for random numbers in the network and the loss, such as dropout. Batches have a separate
            seed.
        bf16: Whether to use bfloat16 autocast. None enables it on GPUs that support it.
        checkpoint_every: Number of steps between checkpoints.
        log_every: Number of steps between log lines.

    Raises:
        InputError: If a field is out of range.
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
            raise InputError("momentum", self.momentum, f"{self.optimizer} has no momentum; leave it out")

    def trajectory(self) -> dict[str, Any]:
        """Return the fields that affect the trained weights, without checkpoint and log intervals."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ("checkpoint_every", "log_every")
        }

    def learning_rate_at(self, step: int, peak: float | None = None) -> float:
        """Return the learning rate of a step.

        Args:
            step: Index of the update, from 0 to steps - 1.
            peak: Peak of the schedule, `learning_rate` by default.
        """
        peak = self.learning_rate if peak is None else peak
        if step < self.warmup_steps:
            return peak * (step + 1) / self.warmup_steps
        left = (self.steps - step) / max(self.steps - self.warmup_steps, 1)
        factor = {"cosine": (1 - math.cos(math.pi * left)) / 2, "linear": left, "constant": 1.0}[
            self.schedule
        ]
        return peak * factor

    def ema_decay_at(self, step: int) -> float:
        """Return the decay of the weight average at `step`, from 0 to steps - 1, or 0 without averaging."""
        if self.ema == "none":
            return 0.0
        if self.ema == "constant" or step < self.warmup_steps:
            return self.ema_decay
        return 1 - max((step + 1) ** -self.ema_power, self.ema_floor)
