"""How the document on the distributional simplicity bias trains its networks, `trialogue_lab.models.published`."""

from typing import Any

from trialogue.training.config import TrainingConfig


def bert_training(steps: int, **changes: Any) -> TrainingConfig:
    """How its encoder is trained: SGD, batches of 1024, a learning rate of 0.03 that falls to zero as a cosine.

    What the document does not give is left out: momentum, weight decay, warm-up and clipping. `changes` are fields of
    the config. Raises `InputError` as the config does.
    """
    settings: dict[str, Any] = {
        "batch_size": 1024,
        "optimizer": "sgd",
        "learning_rate": 0.03,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "warmup_steps": 0,
        "gradient_clip": None,
    }
    return TrainingConfig(steps=steps, **settings | changes)


def gpt_neo_training(steps: int, **changes: Any) -> TrainingConfig:
    """How its decoder is trained: AdamW with moments of 0.9 and 0.95, batches of 128, rate 5e-4, weight decay 0.1.

    The document gives no schedule, warm-up or clipping, and so there is none. `changes` are fields of the config.
    Raises `InputError` as the config does.
    """
    settings: dict[str, Any] = {
        "batch_size": 128,
        "optimizer": "adamw",
        "learning_rate": 5e-4,
        "beta_1": 0.9,
        "beta_2": 0.95,
        "schedule": "constant",
        "weight_decay": 0.1,
        "warmup_steps": 0,
        "gradient_clip": None,
    }
    return TrainingConfig(steps=steps, **settings | changes)
