"""What a user's code may do while it is called, and what is kept from the program."""

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from contextvars import ContextVar
from pathlib import Path

CRASHES = (Exception, SystemExit, GeneratorExit)
"""What a user's code may raise that is its own fault: all but an interruption from outside."""


def raised_at(error: BaseException, file: str | None = None) -> str:
    """Where `error` was raised, as it follows what it says: the last line of `file` on its way, or of any user's."""
    here = str(Path(__file__).parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((here, "<"))
    ]
    own = [frame for frame in frames if frame.filename == file] or frames
    if not own:
        return ""
    with suppress(ValueError):
        return f" ({Path(own[-1].filename).relative_to(Path.cwd())}:{own[-1].lineno})"
    return f" ({own[-1].filename}:{own[-1].lineno})"


_process: ContextVar[int | None] = ContextVar("process", default=None)
"""The process in which a user's code was called, where one is"""
_lock, _called, _leave = threading.Lock(), 0, os._exit


def _exit(status: int) -> None:
    # A process that the code forked has to end so, and other threads are not the code's.
    if _process.get() == os.getpid():
        raise SystemExit(f"os._exit({status})")
    _leave(status)


@contextmanager
def contained() -> Iterator[None]:
    """Around a user's code: what it prints goes to standard error, since standard output may be where samples go.

    `os._exit` raises `SystemExit`, so that it ends the code and not the program without a word; other threads and
    processes that the code forked end by it. What is printed in other threads than the main one stays where it is.
    """
    global _called, _leave
    # There is one standard output for all threads: two that replace it in turns would not put it back.
    main = threading.current_thread() is threading.main_thread()
    with _lock:
        if not _called:
            _leave, os._exit = os._exit, _exit  # type: ignore[assignment]
        _called += 1
    inside = _process.set(os.getpid())
    try:
        with redirect_stdout(sys.stderr) if main else nullcontext():
            yield
    finally:
        _process.reset(inside)
        with _lock:
            _called -= 1
            if not _called:
                os._exit = _leave
