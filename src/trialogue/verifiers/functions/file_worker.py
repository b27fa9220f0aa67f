"""Main loop of the process that `FileFunction` starts to call a function of a user's file.

Messages are JSON. The process first sends the result of loading the file. For each list of arguments that it receives,
it sends one reply per argument. It stops at the first argument for which the function raises an exception or returns a
result that is not a number.
"""

import inspect
import json
import math
import reprlib
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, describe_error
from trialogue.verifiers.functions.answers import annotated_bound, to_number
from trialogue.verifiers.functions.user_files import load_function
from trialogue.verifiers.functions.users_code import CRASHES, format_error_location, output_to_stderr

_GRACE = 1.0  # Seconds after the timeout at which the process ends itself.


def serve(connection: Connection, path: str, shown: str, name: str) -> None:
    """Execute a user's Python file, and call one of its functions for each request of the parent process.

    The function returns when the connection is closed.

    Args:
        connection: Connection to the parent process, which sends arguments and receives results.
        path: Path of the Python file.
        shown: Path of the file for error messages.
        name: Name of the function in the file.
    """
    # The parent process handles Ctrl-C and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def send(**reply: Any) -> None:
        connection.send_bytes(json.dumps(reply).encode())

    # The function may import modules from the folder of the file when it is called.
    sys.path.insert(0, str(Path(path).parent))
    try:
        function = load_function(Path(path), shown, name)
    except InputError as error:
        send(field=error.field, value=str(error.value), hint=error.hint)
        return
    most = annotated_bound(inspect.unwrap(function))
    send(most=most if math.isfinite(most) else None)
    # The parent process may end at any time. With unread data, this raises ConnectionResetError and not EOFError.
    with suppress(EOFError, ConnectionError):
        while True:
            request = json.loads(connection.recv_bytes())
            for argument in request["given"]:
                _set_exit_timer(request["timeout"] and request["timeout"] + _GRACE)
                reply = _call(function, argument if isinstance(argument, str) else tuple(argument), path)
                send(**reply)
                if "value" not in reply:
                    break
            _set_exit_timer(None)


def _set_exit_timer(seconds: float | None) -> None:
    """End this process after `seconds`, in case the parent process has died and cannot do it. None stops the timer."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds or 0)


def _call(function: Callable[[Any], Any], argument: Any, path: str) -> dict[str, Any]:
    try:
        with output_to_stderr():
            result = function(argument)
            value, shown = to_number(result), reprlib.repr(result)
    except CRASHES as error:
        return {"raised": f"{describe_error(error)}{format_error_location(error, path)}"}
    return {"odd": shown} if math.isnan(value) else {"value": value}
