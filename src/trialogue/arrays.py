"""Validation of array arguments, and conversion to tensors.

`Reals` and `Integers` are types of arguments, for functions that `trialogue.validation.validated` checks:

    @validated
    def norm(matrix: Annotated[Tensor, Reals("rows columns")]) -> float: ...
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError


def real_tensor(field: str, values: Any, hint: str, device: torch.device | None = None) -> Tensor:
    """Convert an array of real numbers to a float64 tensor.

    Args:
        field: Name of the argument in errors.
        values: A tensor, a NumPy array or nested lists. Bools count as 0 and 1. Numbers may be infinite or NaN.
        hint: Hint of the error.
        device: Device of the result (default: the device of `values`).

    Raises:
        InputError: If `values` are not real numbers.
    """
    try:
        if isinstance(values, bool):
            raise TypeError
        # The conversion would discard imaginary parts.
        if values.is_complex() if isinstance(values, Tensor) else np.iscomplexobj(values):
            raise InputError(field, _shown(values), "give real numbers, not complex ones")
        return torch.as_tensor(_readable(values), dtype=torch.float64, device=device)
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(field, values, hint) from None


def integer_tensor(field: str, values: Any, hint: str) -> Tensor:
    """Convert an array of integers to an int64 tensor. Raises `InputError` with `hint` if they are not integers."""
    try:
        tensor = torch.as_tensor(_readable(values))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(field, values, hint) from None
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(field, _shown(values), hint)
    return tensor.long()


class _Array(ABC):
    """Base class of types of array arguments. Pydantic calls the method `checked`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        # Most uses of this module do not need pydantic, which takes time to import.
        from pydantic_core import core_schema

        del source, handler
        check: Callable[[Any], Tensor] = self.checked
        return core_schema.no_info_plain_validator_function(check)

    @abstractmethod
    def checked(self, values: Any) -> Tensor:
        """Return `values` as a tensor. Raises `InputError` if they are invalid."""


@dataclass(frozen=True)
class Reals(_Array):
    """Type of an array of real numbers: a tensor, a NumPy array or nested lists.

    Floating-point tensors are passed through unchanged, with their gradients. Other inputs are converted to float64.

    Args:
        axes: Names of the axes, for example "rows columns". Axes with equal names must have equal lengths, and "V*" is
            any number of axes of equal length (default: any shape).
        least: Smallest allowed number (default: no bound).
        most: Largest allowed number (default: no bound).
        infinite: Infinities to allow: "none", "negative" or "both" (default: "none").
        empty: Whether the array may be empty (default: False).
    """

    axes: str = ""
    least: float = -math.inf
    most: float = math.inf
    infinite: str = "none"
    empty: bool = False

    def checked(self, values: Any) -> Tensor:
        """Return `values` as a floating-point tensor. Raises `InputError` if they are invalid."""
        given = isinstance(values, Tensor) and values.is_floating_point()
        tensor = values if given else real_tensor("", values, f"give {self._hint()}")
        _require_axes(tensor, self.axes, self._hint(), self.empty)
        within = (tensor >= self.least) & (tensor <= self.most)
        if self.infinite != "both":
            within &= tensor < math.inf
        if self.infinite == "none":
            within &= tensor > -math.inf
        if not bool(within.all()):
            raise InputError("", float(tensor[~within][0]), f"give {self._hint()}")
        return tensor

    def _hint(self) -> str:
        kind = {"none": "finite numbers", "negative": "numbers below infinity", "both": "numbers"}[
            self.infinite
        ]
        return _describe_array(kind, self.axes, self.least, self.most)


@dataclass(frozen=True)
class Integers(_Array):
    """Type of an array of integers, for example token ids: a tensor, a NumPy array or nested lists.

    The function receives an int64 tensor.

    Args:
        axes: Names of the axes, for example "rows columns". Axes with equal names must have equal lengths, and "V*" is
            any number of axes of equal length.
        least: Smallest allowed number (default: no bound).
        most: Largest allowed number (default: no bound).
        empty: Whether the array may be empty (default: False).
    """

    axes: str = ""
    least: float = -math.inf
    most: float = math.inf
    empty: bool = False

    def checked(self, values: Any) -> Tensor:
        """Return `values` as an int64 tensor. Raises `InputError` if they are invalid."""
        hint = _describe_array("integers", self.axes, self.least, self.most)
        tensor = integer_tensor("", values, f"give {hint}")
        _require_axes(tensor, self.axes, hint, self.empty)
        wrong = tensor[(tensor < self.least) | (tensor > self.most)]
        if len(wrong):
            raise InputError("", int(wrong[0]), f"give {hint}")
        return tensor


def _describe_array(kind: str, axes: str, least: float, most: float) -> str:
    """Return a description of the numbers, their range and the axes of an array."""
    bounds = ""
    if math.isfinite(least) and math.isfinite(most):
        bounds = f" from {least:g} to {most:g}"
    elif math.isfinite(least):
        bounds = f" of at least {least:g}"
    elif math.isfinite(most):
        bounds = f" of at most {most:g}"
    names = axes.split()
    shape = f", shape ({', '.join(names)}{',' if len(names) == 1 else ''})" if names else ""
    return kind + bounds + shape.replace("*,", ", ...")


def _require_axes(tensor: Tensor, axes: str, hint: str, empty: bool) -> None:
    """Raise `InputError` unless the shape of the tensor matches `axes`, and it is not empty or `empty` is True."""
    names = axes.split()
    if names and names[0].endswith("*"):
        right = tensor.ndim > 0 and len(set(tensor.shape)) == 1
    elif names:
        right = tensor.ndim == len(names)
        if right:
            sizes: dict[str, int] = {}
            right = all(
                sizes.setdefault(name, size) == size for name, size in zip(names, tensor.shape, strict=True)
            )
    else:
        right = True
    if not right or not (tensor.numel() or empty):
        raise InputError("", tuple(tensor.shape), f"give {hint}")


def require_bools(field: str, values: object, shape: tuple[int, ...], hint: str) -> None:
    """Raise `InputError` unless `values` is a bool tensor of `shape`."""
    if not isinstance(values, Tensor) or values.dtype != torch.bool:
        raise InputError(field, _shown(values), hint)
    if tuple(values.shape) != shape:
        raise InputError(field, tuple(values.shape), hint)


def parse_device(device: object) -> torch.device:
    """Convert `device` to a `torch.device`. Raises `InputError` if it does not exist or cannot be used."""
    try:
        if isinstance(device, bool) or not isinstance(device, str | int | torch.device):
            raise TypeError(f"{device} is not the name of a device")
        found = torch.device(device)
        torch.empty(0, device=found)
    # Builds of torch without a backend raise AssertionError.
    except (TypeError, ValueError, RuntimeError, AssertionError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
        shown = str(device) if isinstance(device, torch.device) else device
        raise InputError("device", shown, f"it cannot be used here: {first}") from error
    return found


def _readable(values: Any) -> Any:
    """Copy NumPy arrays that torch cannot share: read-only ones, or with negative strides."""
    if isinstance(values, np.ndarray) and (
        not values.flags.writeable or any(step < 0 for step in values.strides)
    ):
        return values.copy()
    return values


def _shown(values: Any) -> Any:
    """Return the dtype of an array, or any other value unchanged, for an error message."""
    return getattr(values, "dtype", values)
