"""Calls of a user's code: the errors that it may raise, where they were raised, and its output."""

import sys
import threading
import traceback
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
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


def output_to_stderr() -> AbstractContextManager[object]:
    """Return a context in which a user's code prints to standard error, because samples go to standard output.

    There is one standard output for all threads, so what other threads than the main one print stays where it is.
    """
    main = threading.current_thread() is threading.main_thread()
    return redirect_stdout(sys.stderr) if main else nullcontext()
