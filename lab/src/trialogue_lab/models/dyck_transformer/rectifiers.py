"""Construction of ReLU networks from affine forms of the units of each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class AffineForm:
    """Affine function of the units of one layer: weights `terms` by unit, and a constant."""

    terms: Mapping[int, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: AffineForm | float) -> AffineForm:
        if not isinstance(other, AffineForm):
            return AffineForm(self.terms, self.constant + other)
        terms = dict(self.terms)
        for unit, weight in other.terms.items():
            terms[unit] = terms.get(unit, 0.0) + weight
        return AffineForm(terms, self.constant + other.constant)

    def __sub__(self, other: AffineForm | float) -> AffineForm:
        return self + (other * -1.0 if isinstance(other, AffineForm) else -other)

    def __mul__(self, factor: float) -> AffineForm:
        return AffineForm(
            {unit: factor * weight for unit, weight in self.terms.items()}, factor * self.constant
        )


def total(forms: Sequence[AffineForm]) -> AffineForm:
    """Return the sum of `forms`."""
    return sum(forms, AffineForm())


class Rectifiers:
    """Units of one hidden layer, each the ReLU of an affine form of the previous layer."""

    def __init__(self) -> None:
        self.forms: list[AffineForm] = []

    def relu(self, form: AffineForm) -> AffineForm:
        """Return ReLU(form) as a form of this layer."""
        self.forms.append(form)
        return AffineForm({len(self.forms) - 1: 1.0})

    def signed(self, form: AffineForm) -> AffineForm:
        """Return the form itself, with any sign."""
        return self.relu(form) - self.relu(form * -1.0)

    def ramp(self, form: AffineForm, low: float, high: float) -> AffineForm:
        """Return a ramp that is 0 below `low`, 1 above `high`, and linear between."""
        slope = 1 / (high - low)
        return self.relu((form - low) * slope) - self.relu((form - high) * slope)

    def steps(self, form: AffineForm, points: Sequence[float]) -> list[AffineForm]:
        """Return indicators of the increasing `points`: 1 at the point and 0 at the others, flat around each."""
        ramps = [
            self.ramp(form, (2 * low + high) / 3, (low + 2 * high) / 3) for low, high in pairwise(points)
        ]
        reached = [AffineForm(constant=1.0), *ramps, AffineForm()]
        return [here - above for here, above in pairwise(reached)]


def look_up(at: Sequence[AffineForm], values: Sequence[float]) -> AffineForm:
    """Return the value at the point indicated by `at`, from `Rectifiers.steps`."""
    return total([mark * value for mark, value in zip(at, values, strict=True) if value])


def coordinates(directions: Tensor) -> list[AffineForm]:
    """Return the inner products of the network inputs with `directions` (n, m) as forms."""
    return [
        AffineForm({i: value for i, value in enumerate(row) if value}) for row in directions.double().tolist()
    ]


@torch.no_grad()
def write(mlp: nn.Sequential, stages: Sequence[Rectifiers], outputs: Sequence[AffineForm]) -> None:
    """Set the weights of `mlp` to hidden layers `stages` and outputs `outputs`."""
    linears = [part for part in mlp if isinstance(part, nn.Linear)]
    for linear, forms in zip(linears, (*(stage.forms for stage in stages), outputs), strict=True):
        linear.weight.zero_()
        for row, form in enumerate(forms):
            linear.bias[row] = form.constant
            for unit, weight in form.terms.items():
                linear.weight[row, unit] = weight
