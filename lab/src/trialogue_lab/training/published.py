"""Training settings of the document on the distributional simplicity bias, for `trialogue_lab.models.published`."""

from typing import Any

from trialogue.training.config import TrainingConfig

_UNSPECIFIED: dict[str, Any] = {"warmup_steps": 0, "gradient_clip": None}
"""Settings that the document does not mention, set to their neutral values."""


def bert_training(steps: int, **changes: Any) -> TrainingConfig:
    """Return the training settings of the document's encoder: SGD with batches of 1024.

    The learning rate starts at 0.03 and decreases to zero along a cosine. There is no momentum, weight decay, warm-up
    or clipping, because the document does not specify them.

    Args:
        steps: Number of training steps.
        **changes: Fields of the config that differ.
    """
    published: dict[str, Any] = {
        "batch_size": 1024,
        "optimizer": "sgd",
        "learning_rate": 0.03,
        "weight_decay": 0.0,
    }
    return TrainingConfig(steps=steps, **_UNSPECIFIED | published | changes)


def gpt_neo_training(steps: int, **changes: Any) -> TrainingConfig:
    """Return the training settings of the document's decoder: AdamW with batches of 128.

    The learning rate is 5e-4. The betas are 0.9 and 0.95, and the weight decay is 0.1. There is no schedule, warm-up or
    clipping, because the document does not specify them.

    Args:
        steps: Number of training steps.
        **changes: Fields of the config that differ.
    """
    betas = {"beta_1": 0.9, "beta_2": 0.95}
    published: dict[str, Any] = {"batch_size": 128, "learning_rate": 5e-4, "schedule": "constant", **betas}
    return TrainingConfig(steps=steps, **_UNSPECIFIED | published | changes)
