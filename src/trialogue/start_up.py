"""What lets a command begin sooner."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Around imports and loading: the garbage collector rests until all is there.

    Looking through what is loaded for good takes a quarter of the time that torch, transformers and a model need.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
