"""How loops over rows are compiled: one decorator, one policy."""

from collections.abc import Callable
from typing import TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile for one thread, without the interpreter's lock, and keep the machine code on disk."""
    kernel: Function = numba.njit(cache=True, nogil=True)(function)
    return kernel
