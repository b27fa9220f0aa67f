"""Objects that observe a training run, such as checkpoints and measurements, and rules that end it early."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trialogue.validation import Count, validated


class Update(NamedTuple):
    """State of a training run after an update of the weights.

    Attributes:
        step: Number of completed updates.
        model: The network in eval mode with averaged weights, if any, as `train` would return it at this step.
        loss: Loss of the last update, scalar float32 on the device of the model. NaN before the first update.
        learning_rate: Learning rate of the first parameter group in the last update. 0 before the first update.
    """

    step: int
    model: nn.Module
    loss: Tensor
    learning_rate: float


class Observer(ABC):
    """Base class of objects that are called after updates of the weights during training.

    Attributes:
        schedule: Numbers of updates after which to call `updated`. None calls it after every update.
    """

    schedule: Container[int] | None = None

    def is_due(self, step: int) -> bool:
        """Return whether this observer must be called after `step` updates."""
        return self.schedule is None or step in self.schedule

    @abstractmethod
    def updated(self, update: Update) -> None:
        """Process an update. This method must not change the weights of `update.model`.

        Gradients are recorded only within `torch.enable_grad()`. Using the random generator of torch does not affect
        the training. A resumed run repeats the calls for updates after its checkpoint.

        Args:
            update: State of the training after the update, or before the first one.
        """


class StoppingRule(ABC):
    """Base class of rules that can end a training run early.

    A rule that is a frozen dataclass can be part of a `Recipe`.
    """

    def is_due(self, step: int) -> bool:
        """Return whether this rule must be evaluated after `step` updates (default: True)."""
        del step
        return True

    @abstractmethod
    def reached(self, update: Update) -> bool:
        """Return whether to end the training after this update.

        The result must depend on the update alone, so that a resumed run ends at the same step. The method must not
        change the weights of `update.model`. Gradients are not recorded.

        Args:
            update: State of the training after the update.
        """


class Scheduled(Observer):
    """Observer that calls a function after given steps.

    Args:
        steps: Numbers of updates after which to call the function, for example `range(0, 1001, 100)`.
        observe: Function of an `Update`.
    """

    def __init__(self, steps: Container[int], observe: Callable[[Update], object]) -> None:
        self.schedule, self._observe = steps, observe

    def updated(self, update: Update) -> None:
        """Call the function."""
        self._observe(update)


Layers = Callable[[Any], Iterable[Iterable[Tensor]]]
"""Function that returns the matrices of each layer of a network, for example `FactoredAttention.matrices`."""


class Displacement(Observer):
    """Observer that measures how far the weights of each layer have moved from their initial values.

    The displacement of a layer is the mean square change of the entries of a matrix, summed over the matrices
    of the layer (equation 6 of the document on the distributional simplicity bias).

    Args:
        model: Network with the initial weights. A copy of its weights is stored.
        steps: Numbers of updates after which to measure.
        layers: Function that returns the matrices of each layer.

    Attributes:
        displacements: Displacement of each layer, (layers,) float64, by step.
    """

    def __init__(self, model: nn.Module, steps: Container[int], layers: Layers) -> None:
        self.schedule, self._layers = steps, layers
        self._start = self._weights(model)
        self.displacements: dict[int, Tensor] = {}

    def updated(self, update: Update) -> None:
        """Store the displacements of the layers."""
        moved = [
            sum(float((matrix - start).square().mean()) for matrix, start in zip(layer, first, strict=True))
            for layer, first in zip(self._weights(update.model), self._start, strict=True)
        ]
        self.displacements[update.step] = torch.tensor(moved, dtype=torch.float64)

    def _weights(self, model: nn.Module) -> list[list[Tensor]]:
        with torch.no_grad():
            return [[matrix.double().clone() for matrix in layer] for layer in self._layers(model)]


@validated
def log_steps(last: Count, count: Count) -> tuple[int, ...]:
    """Return logarithmically spaced integer steps from 1 to `last`.

    Args:
        last: Last step.
        count: Number of steps before duplicates from rounding are removed.
    """
    return tuple(sorted({round(last ** (1 - place / max(1, count - 1))) for place in range(count)}))
