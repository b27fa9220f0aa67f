"""How the document on the distributional simplicity bias trains its networks, `trialogue_lab.models.published`."""

from typing import Any

from trialogue.training.config import TrainingConfig

_UNSTATED: dict[str, Any] = {"warmup_steps": 0, "gradient_clip": None}
"""What the document does not give is left out, unlike the defaults of the config."""


def bert_training(steps: int, **changes: Any) -> TrainingConfig:
    """How its encoder is trained: SGD, batches of 1024, a learning rate of 0.03 that falls to zero as a cosine.

    What the document does not give is left out: momentum, weight decay, warm-up and clipping. `changes` are fields of
    the config. Raises `InputError` as the config does.
    """
    published: dict[str, Any] = {
        "batch_size": 1024,
        "optimizer": "sgd",
        "learning_rate": 0.03,
        "weight_decay": 0.0,
    }
    return TrainingConfig(steps=steps, **_UNSTATED | published | changes)


def gpt_neo_training(steps: int, **changes: Any) -> TrainingConfig:
    """How its decoder is trained: AdamW with moments of 0.9 and 0.95, batches of 128, rate 5e-4, weight decay 0.1.

    The document gives no schedule, warm-up or clipping, and so there is none. `changes` are fields of the config.
    Raises `InputError` as the config does.
    """
    moments = {"beta_1": 0.9, "beta_2": 0.95}
    published: dict[str, Any] = {"batch_size": 128, "learning_rate": 5e-4, "schedule": "constant", **moments}
    return TrainingConfig(steps=steps, **_UNSTATED | published | changes)
