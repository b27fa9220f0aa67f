"""Memory of a training on a processor: what one step frees the next one is given, without the kernel between them.

The C library maps large blocks one by one and unmaps them when they are freed, so that every step is given its pages
anew: a twentieth to a third of the time of a step whose logits are tens of megabytes, by how busy the kernel is.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""What `mallopt` of glibc is told of, by `malloc.h`."""
_KEPT = {_MMAP_THRESHOLD: 2**31 - 1, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 2**26}
_USUAL = {_MMAP_THRESHOLD: 2**25, _TRIM_THRESHOLD: 2**26, _TOP_PAD: 2**17}
"""Where glibc's own thresholds end up in a process that frees large blocks."""


@contextmanager
def kept_memory() -> Iterator[bool]:
    """In the block this process keeps the memory that it frees; behind it what is free goes back to the system.

    Yields whether that can be had: of another C library than glibc nothing changes.
    """
    try:
        library = ctypes.CDLL(None)
        tell, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        yield False
        return
    try:
        yield all(tell(name, value) == 1 for name, value in _KEPT.items())
    finally:
        for name, value in _USUAL.items():
            tell(name, value)
        trim(0)
