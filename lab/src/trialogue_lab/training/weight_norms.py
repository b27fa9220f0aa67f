"""Recording of norms and rotations of weight matrices during training (Figures 2.4 and 2.9 of the thesis)."""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from trialogue.training.observers import Observer, Update

Groups = Callable[[Any], Mapping[str, Iterable[Tensor]]]
"""Function from a network to named groups of matrices, for example `TopicTransformer.matrices`."""


class WeightNorms(Observer):
    """Training observer that records the norms of named groups of matrices, and how far the matrices rotate.

    Args:
        steps: Training steps after which the matrices are recorded.
        groups: Function that returns the groups of a network. Groups without matrices are skipped.

    Attributes:
        norms: Frobenius norm of each group, as `norms[step][name]`.
        rotations: Cosine distance (1 - cos) / 2 between each group and its previous record, as `rotations[step][name]`.
            It is 0 for equal directions and 1/2 for a right angle. It is also 0 in the first record, and for a group
            that is zero.

    Example:
        norms = WeightNorms(range(0, 1001, 10), TopicTransformer.matrices)
        train(model, batches, config, observer=norms)
        norms.norms[1000]["values"]
    """

    def __init__(self, steps: Container[int], groups: Groups) -> None:
        self.schedule, self._groups = steps, groups
        self._before: dict[str, Tensor] = {}
        self.norms: dict[int, dict[str, float]] = {}
        self.rotations: dict[int, dict[str, float]] = {}

    def updated(self, update: Update) -> None:
        """Record norms and rotations."""
        groups = {name: list(matrices) for name, matrices in self._groups(update.model).items()}
        flat = {
            name: torch.cat([matrix.detach().double().flatten() for matrix in matrices])
            for name, matrices in groups.items()
            if matrices
        }
        self.norms[update.step] = {name: float(weights.norm()) for name, weights in flat.items()}
        self.rotations[update.step] = {
            name: _compute_rotation(self._before.get(name, weights), weights)
            for name, weights in flat.items()
        }
        self._before = flat


def _compute_rotation(before: Tensor, after: Tensor) -> float:
    size = float(before.norm() * after.norm())
    return max(0.0, (1 - float(before @ after) / size) / 2) if size else 0.0
