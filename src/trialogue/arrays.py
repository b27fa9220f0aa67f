"""Validate array arguments and convert them to tensors.

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
    """`values` as float64 on `device`, by default where they are; raises `InputError` where they are no real numbers.

    Arrays of truth values count as 0 and 1. Whether numbers are finite is not asked.
    """
    try:
        if isinstance(values, bool):
            raise TypeError
        # The conversion would cut off imaginary parts.
        if values.is_complex() if isinstance(values, Tensor) else np.iscomplexobj(values):
            raise InputError(field, _shown(values), "give real numbers, not complex ones")
        return torch.as_tensor(_readable(values), dtype=torch.float64, device=device)
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(field, values, hint) from None


def whole_tensor(field: str, values: Any, hint: str) -> Tensor:
    """`values` as int64, where they are; raises `InputError` where they are no whole numbers."""
    try:
        tensor = torch.as_tensor(_readable(values))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(field, values, hint) from None
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(field, _shown(values), hint)
    return tensor.long()


class _Array(ABC):
    """Base class of the array types, which lets pydantic call `checked`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # which most uses of this module need not wait for

        del source, handler
        check: Callable[[Any], Tensor] = self.checked
        return core_schema.no_info_plain_validator_function(check)

    @abstractmethod
    def checked(self, values: Any) -> Tensor:
        """Return `values` as a tensor; raises `InputError` for other arrays."""


@dataclass(frozen=True)
class Reals(_Array):
    """Type of an array of real numbers: a tensor, a NumPy array or nested lists.

    Floating-point tensors are passed through unchanged, with their gradients. Other inputs are converted to float64.

    Args:
        axes: Names of the axes, "rows columns"; axes of one name have one length, and "V*" is any number of axes of one
            length. Any shape by default.
        least: Smallest number allowed.
        most: Greatest number allowed.
        infinite: Infinities to allow: "none", "negative" or "both".
        empty: Whether the array may have no numbers.
    """

    axes: str = ""
    least: float = -math.inf
    most: float = math.inf
    infinite: str = "none"
    empty: bool = False

    def checked(self, values: Any) -> Tensor:
        """Return `values` as a floating-point tensor; raises `InputError` for other arrays."""
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
        return _described(kind, self.axes, self.least, self.most)


@dataclass(frozen=True)
class Integers(_Array):
    """Type of an array of integers, such as token ids: a tensor, a NumPy array or nested lists.

    The function receives an int64 tensor. `axes` and `empty` are as in `Reals`, `least` and `most` bound the numbers.
    """

    axes: str = ""
    least: float = -math.inf
    most: float = math.inf
    empty: bool = False

    def checked(self, values: Any) -> Tensor:
        """Return `values` as an int64 tensor; raises `InputError` for other arrays."""
        hint = _described("integers", self.axes, self.least, self.most)
        tensor = whole_tensor("", values, f"give {hint}")
        _require_axes(tensor, self.axes, hint, self.empty)
        wrong = tensor[(tensor < self.least) | (tensor > self.most)]
        if len(wrong):
            raise InputError("", int(wrong[0]), f"give {hint}")
        return tensor


def _described(kind: str, axes: str, least: float, most: float) -> str:
    """What an array holds: its numbers, their range and its axes."""
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
    """Raise `InputError` for a tensor of another shape than `axes` names, and for an empty one unless `empty`."""
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
    """Raise `InputError` where `values` is no tensor of truth values of `shape`."""
    if not isinstance(values, Tensor) or values.dtype != torch.bool:
        raise InputError(field, _shown(values), hint)
    if tuple(values.shape) != shape:
        raise InputError(field, tuple(values.shape), hint)


def checked_device(device: object) -> torch.device:
    """Return `device` as torch's; raises `InputError` where torch knows none of that name, or cannot use it here."""
    try:
        if isinstance(device, bool) or not isinstance(device, str | int | torch.device):
            raise TypeError(f"{device} names no device")
        found = torch.device(device)
        torch.empty(0, device=found)
    # Builds without a backend assert that they have it.
    except (TypeError, ValueError, RuntimeError, AssertionError, ImportError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
        shown = str(device) if isinstance(device, torch.device) else device
        raise InputError("device", shown, f"it cannot be used here: {first}") from error
    return found


def _readable(values: Any) -> Any:
    """Numpy arrays that torch does not share memory with, read only or backwards, as copies."""
    if isinstance(values, np.ndarray) and (
        not values.flags.writeable or any(step < 0 for step in values.strides)
    ):
        return values.copy()
    return values


def _shown(values: Any) -> Any:
    """What is wrong of values of a wrong type: of arrays the type."""
    return getattr(values, "dtype", values)
