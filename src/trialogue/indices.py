"""Validation of indices and arrays before they are passed to compiled loops."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import integer_tensor
from trialogue.compilation import compiled
from trialogue.errors import InputError

_FLOATS = (torch.float32, torch.float64)


@compiled
def _first_outside(values: NDArray[np.int64], size: int) -> int:
    """Return the position of the first of `values` (n,) that is not in 0..size - 1, or -1."""
    outside = False
    # Without a branch, so that the loop becomes vector code.
    for place in range(len(values)):
        outside |= (values[place] < 0) | (values[place] >= size)
    if outside:
        for place in range(len(values)):
            if values[place] < 0 or values[place] >= size:
                return place
    return -1


def first_outside(values: Tensor, size: int) -> int | None:
    """Return the first of `values` (int64, any shape and device) that is not in 0..size - 1, or None."""
    if values.device.type == "cpu":
        flat = values.numpy().ravel()
        place = _first_outside(flat, size)
        return None if place < 0 else int(flat[place])
    outside = (values < 0) | (values >= size)
    return int(values[outside][0]) if bool(outside.any()) else None


def index_tensor(
    field: str,
    values: object,
    shape: tuple[int | None, ...],
    size: int,
    *,
    shape_hint: str,
    range_hint: str,
) -> Tensor:
    """Convert indices to an int64 tensor, and raise `InputError` if they are not valid.

    Args:
        field: Name of the argument in errors.
        values: Whole numbers, as a tensor or an object that can be converted to one.
        shape: Required shape; None accepts any size of that dimension.
        size: Number of items that are indexed. Each value must be in 0..size - 1.
        shape_hint: Hint of the error if values have another shape or type.
        range_hint: Hint of the error if a value is out of range.

    Raises:
        InputError: If the values are not whole numbers, have another shape, or one of them is out of range.
    """
    is_ready = isinstance(values, Tensor) and values.dtype == torch.int64
    tensor: Tensor = values if is_ready else integer_tensor(field, values, shape_hint)  # type: ignore[assignment]
    _require_shape(field, tensor.shape, shape, shape_hint)
    wrong = first_outside(tensor, size)
    if wrong is not None:
        raise InputError(field, wrong, range_hint)
    return tensor


def site_indices(sites: object, rows: int, count: int) -> Tensor:
    """Return `sites` (rows,) as int64. Raises `InputError` unless each is in 0..count - 1."""
    hint = f"give one site from 0 to {count - 1} for each of the {rows} rows"
    return index_tensor("sites", sites, (rows,), count, shape_hint=hint, range_hint=hint)


def _require_shape(field: str, found: tuple[int, ...], shape: tuple[int | None, ...], hint: str) -> None:
    """Raise `InputError` unless the shape `found` matches `shape`, in which None accepts any size."""
    # Without `all`, whose generator takes longer than the comparisons.
    matches = len(found) == len(shape)
    if matches:
        for have, want in zip(found, shape, strict=True):
            if want is not None and have != want:
                matches = False
    if not matches:
        raise InputError(field, tuple(found), hint)


def require_array(field: str, array: object, dtype: type[np.generic], shape: tuple[int | None, ...]) -> None:
    """Raise `InputError` unless `array` is a NumPy array of `dtype` whose shape matches. None accepts any size."""
    wanted = ", ".join("n" if size is None else str(size) for size in shape)
    hint = f"give a numpy array of {np.dtype(dtype)}, of the shape ({wanted})"
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise InputError(field, getattr(array, "dtype", type(array).__name__), hint)
    _require_shape(field, array.shape, shape, hint)


def require_floats(field: str, values: object, shape: tuple[int | None, ...], hint: str) -> None:
    """Raise `InputError` unless `values` is a float32 or float64 tensor whose shape matches. None accepts any size."""
    if not isinstance(values, Tensor) or values.dtype not in _FLOATS:
        raise InputError(field, getattr(values, "dtype", type(values).__name__), hint)
    _require_shape(field, values.shape, shape, hint)


def require_int64(field: str, values: object, shape: tuple[int | None, ...], hint: str) -> None:
    """Raise `InputError` unless `values` is an int64 tensor whose shape matches `shape`. None accepts any size."""
    if not isinstance(values, Tensor) or values.dtype != torch.int64:
        raise InputError(field, getattr(values, "dtype", type(values).__name__), hint)
    _require_shape(field, values.shape, shape, hint)
