"""Helpers for calling user-defined functions: location of errors, and redirection of output."""

import sys
import threading
import traceback
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from pathlib import Path

CRASHES = (Exception, SystemExit, GeneratorExit)
"""Exceptions of user code that are reported as its errors. `KeyboardInterrupt` is not among them."""


def format_error_location(error: BaseException, file: str | None = None) -> str:
    """Return the location in the user's code at which an error was raised, formatted as ` (path:line)`.

    Args:
        error: Exception with a traceback.
        file: Path of the user's file (default: any file outside of this package).

    Returns:
        The last such location in the traceback, with a leading space. An empty string if there is none.
    """
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
    """Return a context manager that redirects standard output to standard error, because samples use standard output.

    Standard output is shared by all threads, so it is redirected only in the main thread.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return redirect_stdout(sys.stderr) if is_main else nullcontext()
