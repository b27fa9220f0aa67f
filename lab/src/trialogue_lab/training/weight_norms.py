"""How large the matrices of a network are in training, and how far they turn: Figures 2.4 and 2.9 of the thesis.

An observer of a training:

    norms = WeightNorms(range(0, 1001, 10), TopicTransformer.matrices)
    train(model, batches, config, observer=norms)
    norms.norms[1000]["values"]
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from trialogue.training.observers import Observer, Update

Groups = Callable[[Any], Mapping[str, Iterable[Tensor]]]
"""Names groups of matrices of a network, such as `TopicTransformer.matrices`."""


class WeightNorms(Observer):
    """Norms and rotations of groups of matrices after each of the `steps`.

    `norms[step][name]` is the root of the sum of squares of a group, `rotations[step][name]` its cosine distance (1 -
    cos) / 2 from where it was when the observer was last told: 0 for the same direction, 1/2 for a right angle. The
    rotation of what is zero, and of the first step, is 0. Groups without matrices are left out.
    """

    def __init__(self, steps: Container[int], groups: Groups) -> None:
        self.schedule, self._groups = steps, groups
        self._before: dict[str, Tensor] = {}
        self.norms: dict[int, dict[str, float]] = {}
        self.rotations: dict[int, dict[str, float]] = {}

    def updated(self, update: Update) -> None:
        """Keep norms and rotations."""
        groups = {name: list(matrices) for name, matrices in self._groups(update.model).items()}
        flat = {
            name: torch.cat([matrix.detach().double().flatten() for matrix in matrices])
            for name, matrices in groups.items()
            if matrices
        }
        self.norms[update.step] = {name: float(weights.norm()) for name, weights in flat.items()}
        self.rotations[update.step] = {
            name: _rotation(self._before.get(name, weights), weights) for name, weights in flat.items()
        }
        self._before = flat


def _rotation(before: Tensor, after: Tensor) -> float:
    size = float(before.norm() * after.norm())
    return max(0.0, (1 - float(before @ after) / size) / 2) if size else 0.0
