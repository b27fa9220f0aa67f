"""Ctrl-C that waits for the end of a step."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C back until it is asked for, so that no update is cut in two; the second is immediate."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def hold(number: int, frame: object) -> None:
        del number, frame
        requested.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, hold)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
