"""Faster start of commands by pausing the garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_for_good: ContextVar[bool] = ContextVar("for_good", default=False)


@contextmanager
def for_good() -> Iterator[None]:
    """Context manager of a process that runs one command. Loaded objects are excluded from garbage collection."""
    before = _for_good.set(True)
    try:
        yield
    finally:
        _for_good.reset(before)
        gc.freeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """Context manager that disables the garbage collector during imports and loading.

    Collections take a quarter of the loading time of torch, transformers and a model, and the same time again at exit.
    In processes without `for_good`, a model is collected once it is no longer referenced.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if _for_good.get():
                gc.freeze()
            gc.enable()
