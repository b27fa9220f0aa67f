"""The same architecture with the weights that a training would begin with: what a measure gives by chance."""

from __future__ import annotations

from typing import Any

import torch

from trialogue.randomness import seed_of


def with_random_weights(model: Any, seed: int) -> Any:
    """A model of the class and the config of the transformers `model`, with weights drawn by `seed`.

    It is on the device of `model`, and of its type.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed_of(seed, "random weights"))
        drawn = type(model)(model.config)
    return drawn.to(model.device, model.dtype).eval()
