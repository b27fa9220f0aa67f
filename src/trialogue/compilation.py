"""Compilation of loops over rows with numba, and their execution on several threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba
import torch

Function = TypeVar("Function", bound=Callable[..., object])

# Entries per block, about half a millisecond of work. Passing a block to a thread takes a tenth of this time.
_BLOCK = 1 << 17


def compiled(function: Function) -> Function:
    """Compile a function with numba for one thread, without the global interpreter lock, and cache it on disk."""
    kernel: Function = numba.njit(cache=True, nogil=True)(function)
    return kernel


def compiled_sums(function: Function) -> Function:
    """Compile like `compiled`, but allow sums in any order, so that loops can be vectorised."""
    kernel: Function = numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})(function)
    return kernel


def run_over_rows(kernel: Callable[..., None], rows: int, width: int, *arguments: object) -> None:
    """Run a compiled function on all rows in parallel, on `torch.get_num_threads()` threads.

    Args:
        kernel: Function that is called as `kernel(first, last, *arguments)` for rows `first` to `last` - 1. Its result
            for a row must not depend on other rows.
        rows: Number of rows.
        width: Approximate number of operations per row, from which the number of threads is chosen.
        *arguments: Other arguments of the function.
    """
    # Parallel loops of numba abort the process after a fork, or if two threads call them.
    step = max(1, _BLOCK // max(1, width))
    blocks = [(first, min(first + step, rows)) for first in range(0, rows, step)]
    threads = min(torch.get_num_threads(), len(blocks))
    if threads < 2:
        kernel(0, rows, *arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda block: kernel(*block, *arguments), blocks):
            pass
