"""The process in which a function of a user's file is called: what `FileFunction` begins and asks.

Both sides send JSON. It says once what it has loaded; asked about a list of arguments, it answers each, up to the
first that the function raises about or answers by what is no number.
"""

import inspect
import json
import math
import reprlib
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, reason
from trialogue.verifiers.answers import number, stated_most
from trialogue.verifiers.user_files import function_of
from trialogue.verifiers.users_code import CRASHES, output_to_stderr, raised_at

_GRACE = 1.0  # seconds


def serve(connection: Connection, path: str, shown: str, name: str) -> None:
    """Load the function `name` of the file at `path`, and answer until nobody asks any more."""
    # Ctrl-C is for the program that asks, and ends this one too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def say(**told: Any) -> None:
        connection.send_bytes(json.dumps(told).encode())

    # The function may import modules of the file's folder when it is called.
    sys.path.insert(0, str(Path(path).parent))
    try:
        function = function_of(Path(path), shown, name)
    except InputError as error:
        say(field=error.field, value=str(error.value), hint=error.hint)
        return
    most = stated_most(inspect.unwrap(function))
    say(most=most if math.isfinite(most) else None)
    while True:
        try:
            asked = json.loads(connection.recv_bytes())
        except EOFError:
            return
        for given in asked["given"]:
            _end_in(asked["timeout"] and asked["timeout"] + _GRACE)
            told = _answer(function, given if isinstance(given, str) else tuple(given), path)
            say(**told)
            if "value" not in told:
                break
        _end_in(None)


def _end_in(seconds: float | None) -> None:
    """Have this process ended in so many seconds, whatever it is doing: whoever asks does so, unless it has died."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds or 0)


def _answer(function: Callable[[Any], Any], given: Any, path: str) -> dict[str, Any]:
    try:
        with output_to_stderr():
            answer = function(given)
            value, shown = number(answer), reprlib.repr(answer)
    except CRASHES as error:
        return {"raised": f"{reason(error)}{raised_at(error, path)}"}
    return {"odd": shown} if math.isnan(value) else {"value": value}
