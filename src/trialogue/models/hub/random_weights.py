"""Randomly initialised copies of models, which serve as a baseline for measurements."""

from __future__ import annotations

from typing import Any

import torch

from trialogue.randomness import derive_seed


def with_random_weights(model: Any, seed: int) -> Any:
    """Return a randomly initialised copy of a model.

    Args:
        model: Model of transformers.
        seed: Seed of the initialisation.

    Returns:
        A model with the same class, configuration, device and dtype.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, "random weights"))
        initialized = type(model)(model.config)
    return initialized.to(model.device, model.dtype).eval()
