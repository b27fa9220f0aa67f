"""Handling of Ctrl-C during a training step, which is delayed until the end of the step."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def defer_interrupt() -> Iterator[Callable[[], bool]]:
    """Context manager that records the first Ctrl-C instead of raising it.

    A second Ctrl-C raises immediately. The manager yields a function that returns whether Ctrl-C was pressed. Outside
    the main thread, signals are not changed.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested.is_set
        return
    previous = signal.getsignal(signal.SIGINT)

    def record(number: int, frame: object) -> None:
        del number, frame
        requested.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, record)
    try:
        yield requested.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
