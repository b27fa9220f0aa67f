"""What lets a command begin sooner."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_for_good: ContextVar[bool] = ContextVar("for_good", default=False)


@contextmanager
def for_good() -> Iterator[None]:
    """Around a process that runs one command: what that loads is never looked through, not even in the end."""
    before = _for_good.set(True)
    try:
        yield
    finally:
        _for_good.reset(before)
        gc.freeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """Around imports and loading: the garbage collector rests until all is there.

    Looking through what is loaded for good takes a quarter of the time that torch, transformers and a model need, and
    again as long when the process ends. In other processes than one `for_good` a model is collected when nobody holds
    it.
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
