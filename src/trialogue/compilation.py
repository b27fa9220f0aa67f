"""How loops over rows are compiled and shared among threads: one policy."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba
import torch

Function = TypeVar("Function", bound=Callable[..., object])

# Entries: half a millisecond of work, against a tenth of that to hand it to a thread.
_BLOCK = 1 << 17


def compiled(function: Function) -> Function:
    """Compile for one thread, without the interpreter's lock, and keep the machine code on disk."""
    kernel: Function = numba.njit(cache=True, nogil=True)(function)
    return kernel


def compiled_sums(function: Function) -> Function:
    """The same for loops that add up: their terms are added in any order, so that they become vector code."""
    kernel: Function = numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})(function)
    return kernel


def over_rows(kernel: Callable[..., None], rows: int, width: int, *arguments: object) -> None:
    """Call `kernel(first, last, *arguments)` on blocks that cover `rows` rows of `width` entries of work.

    Runs on `torch.get_num_threads()` threads; what the kernel does with one row must not depend on other rows.
    """
    # Not numba's parallel loops: their pools abort the process after a fork or when two threads call.
    step = max(1, _BLOCK // max(1, width))
    blocks = [(first, min(first + step, rows)) for first in range(0, rows, step)]
    threads = min(torch.get_num_threads(), len(blocks))
    if threads < 2:
        kernel(0, rows, *arguments)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda block: kernel(*block, *arguments), blocks):
            pass
