"""Arrays that a user gives, as tensors of one type: what is complex, ragged or no array at all is one line."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError


def real_tensor(field: str, values: Any, mend: str, device: torch.device | None = None) -> Tensor:
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
        raise InputError(field, values, mend) from None


def whole_tensor(field: str, values: Any, mend: str) -> Tensor:
    """`values` as int64, where they are; raises `InputError` where they are no whole numbers."""
    try:
        tensor = torch.as_tensor(_readable(values))
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(field, values, mend) from None
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(field, _shown(values), mend)
    return tensor.long()


def require_bools(field: str, values: object, shape: tuple[int, ...], mend: str) -> None:
    """Raise `InputError` where `values` is no tensor of truth values of `shape`."""
    if not isinstance(values, Tensor) or values.dtype != torch.bool:
        raise InputError(field, _shown(values), mend)
    if tuple(values.shape) != shape:
        raise InputError(field, tuple(values.shape), mend)


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
