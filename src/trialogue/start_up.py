"""Faster start of commands by pausing the garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_frozen: ContextVar[bool] = ContextVar("is_frozen", default=False)


@contextmanager
def freeze_collector() -> Iterator[None]:
    """Context manager for a process that runs one command, in which loaded objects are never garbage-collected."""
    before = _is_frozen.set(True)
    try:
        yield
    finally:
        _is_frozen.reset(before)
        gc.freeze()


@contextmanager
def pause_collector() -> Iterator[None]:
    """Context manager that disables the garbage collector, for faster imports and loading.

    Collections take a quarter of the loading time of torch, transformers and a model, and the same time again at exit.
    In processes without `freeze_collector`, a model is collected once it is no longer referenced.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if _is_frozen.get():
                gc.freeze()
            gc.enable()
