"""What lets a command begin sooner."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Around imports and what is loaded for good: the garbage collector does not look through it, here or later.

    That takes a quarter of the time that torch, transformers and a model need until they are there.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.freeze()
            gc.enable()
