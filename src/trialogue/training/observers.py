"""Who follows a training: observers, the steps at which they are told, and rules that end it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trialogue.validation import Count, validated


class Update(NamedTuple):
    """Where a training stands after `step` updates; `loss` and `learning_rate` are those of the last one.

    `model` is as `train` would return it if it stopped here: in eval mode, with the averaged weights where there are
    any. Before the first update (`step` 0) the loss is NaN and the learning rate 0.
    """

    step: int
    model: nn.Module
    loss: Tensor  # () float32, on the model's device
    learning_rate: float  # of the optimizer's first group


class Observer(ABC):
    """Base class of objects that follow a training while it runs."""

    schedule: Container[int] | None = None
    """Numbers of updates after which `updated` is called, 0 to all; None is every number."""

    def wants(self, step: int) -> bool:
        """Return whether to call `updated` after `step` updates."""
        return self.schedule is None or step in self.schedule

    @abstractmethod
    def updated(self, update: Update) -> None:
        """Told after every update that it wants, and before the first: `update.model` must keep its weights.

        Gradients are recorded only within `torch.enable_grad()`. What it draws from torch's generator changes nothing
        of the training. A run that resumes tells of the updates behind its checkpoint once more.
        """


class StoppingRule(ABC):
    """When a training has come to its end before its last step: a function of where it stands.

    One that is a frozen dataclass can be part of a `Recipe`.
    """

    def wants(self, step: int) -> bool:
        """Whether it is asked after `step` updates, 1 to all: always, unless a rule differs."""
        del step
        return True

    @abstractmethod
    def reached(self, update: Update) -> bool:
        """Whether this is the end; it must depend on the update alone, so that a resumed run ends where it would have.

        What holds for an observer holds here: `update.model` must keep its weights, and gradients are not recorded.
        """


class Scheduled(Observer):
    """Tells the function `observe` of the updates that are in `steps`, such as `range(0, 1001, 100)`."""

    def __init__(self, steps: Container[int], observe: Callable[[Update], object]) -> None:
        self.schedule, self._observe = steps, observe

    def updated(self, update: Update) -> None:
        """Tell the function."""
        self._observe(update)


Layers = Callable[[Any], Iterable[Iterable[Tensor]]]
"""Names the matrices of every layer of a network, such as `FactoredAttention.matrices`."""


class Displacement(Observer):
    """How far each layer has moved from the weights that `model` has when this is made, after each of the `steps`.

    The mean square displacement of a layer is the sum over its matrices of the mean square over entries: equation 6 of
    the document on the distributional simplicity bias. `displacements[step]` (layers,) float64 holds them.
    """

    def __init__(self, model: nn.Module, steps: Container[int], layers: Layers) -> None:
        self.schedule, self._layers = steps, layers
        self._start = self._weights(model)
        self.displacements: dict[int, Tensor] = {}

    def updated(self, update: Update) -> None:
        """Keep the displacements."""
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
    """Steps from 1 to `last` in equal ratios, as nearly as whole numbers allow: `count`, less those that coincide."""
    return tuple(sorted({round(last ** (1 - place / max(1, count - 1))) for place in range(count)}))
