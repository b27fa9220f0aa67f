"""What a user's code may do while it is called, and what is kept from the program."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import NoReturn

CRASHES = (Exception, SystemExit, GeneratorExit)
"""What a user's code may raise that is its own fault: all but an interruption from outside."""


@contextmanager
def contained() -> Iterator[None]:
    """Around a user's code: what it prints goes to standard error, since standard output may be where samples go.

    `os._exit` raises `SystemExit`, so that it ends the code and not the program without a word; but in a process that
    the code forked, which has to end so.
    """
    # There is one of each for all threads: two that replace it in turns would not put it back.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    leave, process = os._exit, os.getpid()

    def refused(status: int) -> NoReturn:
        if os.getpid() != process:
            leave(status)
        raise SystemExit(f"os._exit({status})")

    os._exit = refused
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os._exit = leave
