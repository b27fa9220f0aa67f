"""Construction of ReLU networks that compute given functions, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class AffineForm:
    """Affine function (weighted sum plus constant) of the units of one layer.

    Args:
        terms: Weight of each unit, by the index of the unit. Other units have weight zero.
        constant: Constant that is added.
    """

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


def sum_forms(forms: Sequence[AffineForm]) -> AffineForm:
    """Return the sum of affine functions of the same layer."""
    return sum(forms, AffineForm())


class Rectifiers:
    """Builder of one hidden ReLU layer. Each unit is the ReLU of an affine function of the previous layer."""

    def __init__(self) -> None:
        self.forms: list[AffineForm] = []

    def relu(self, form: AffineForm) -> AffineForm:
        """Add a unit for ReLU(form), and return its value as an affine function of this layer."""
        self.forms.append(form)
        return AffineForm({len(self.forms) - 1: 1.0})

    def signed(self, form: AffineForm) -> AffineForm:
        """Add units that pass a value of any sign through the layer.

        Args:
            form: Affine function of the previous layer.

        Returns:
            The same value as an affine function of this layer.
        """
        return self.relu(form) - self.relu(form * -1.0)

    def ramp(self, form: AffineForm, low: float, high: float) -> AffineForm:
        """Add units for a ramp of a value, which is 0 below `low`, 1 above `high`, and linear between.

        Args:
            form: Affine function of the previous layer.
            low: Start of the ramp.
            high: End of the ramp.

        Returns:
            The ramp as an affine function of this layer.
        """
        slope = 1 / (high - low)
        return self.relu((form - low) * slope) - self.relu((form - high) * slope)

    def steps(self, form: AffineForm, points: Sequence[float]) -> list[AffineForm]:
        """Add units that indicate which of several points a value is equal to.

        Args:
            form: Affine function of the previous layer.
            points: Possible values in increasing order.

        Returns:
            For each point, an affine function of this layer: 1 if the value is near this point, and 0 near
            the others.
        """
        ramps = [
            self.ramp(form, (2 * low + high) / 3, (low + 2 * high) / 3) for low, high in pairwise(points)
        ]
        reached = [AffineForm(constant=1.0), *ramps, AffineForm()]
        return [here - above for here, above in pairwise(reached)]


def select_value(at: Sequence[AffineForm], values: Sequence[float]) -> AffineForm:
    """Return the value that belongs to the indicated point, as an affine function.

    Args:
        at: 0/1 indicators of the points, from `Rectifiers.steps`.
        values: Value of each point.
    """
    return sum_forms([mark * value for mark, value in zip(at, values, strict=True) if value])


def coordinates(directions: Tensor) -> list[AffineForm]:
    """Return the inner products of the network's input with fixed vectors, as affine functions.

    Args:
        directions: The vectors (n, m), where m is the width of the input.
    """
    return [
        AffineForm({i: value for i, value in enumerate(row) if value}) for row in directions.double().tolist()
    ]


@torch.no_grad()
def write(mlp: nn.Sequential, stages: Sequence[Rectifiers], outputs: Sequence[AffineForm]) -> None:
    """Set the weights of an MLP to a constructed ReLU network.

    Args:
        mlp: The MLP, which is changed in place.
        stages: Hidden layers in order.
        outputs: Outputs, as affine functions of the last hidden layer.
    """
    linears = [part for part in mlp if isinstance(part, nn.Linear)]
    for linear, forms in zip(linears, (*(stage.forms for stage in stages), outputs), strict=True):
        linear.weight.zero_()
        for row, form in enumerate(forms):
            linear.bias[row] = form.constant
            for unit, weight in form.terms.items():
                linear.weight[row, unit] = weight
