"""A call of a user's function that may not take longer than it is allowed to."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, TypeVar

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")

# A delay of zero would switch a timer off.
_AT_ONCE = 1e-6


class Overdue(Exception):
    """A call has not returned in time."""


class _Alarm(BaseException):
    """Ends the call; no `Exception`, so that a function that catches those does not go on."""


def call_within(seconds: float, function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    """Return `function(argument)`; raises `Overdue` where it takes longer than `seconds`, and what it raises itself.

    In the main thread an alarm interrupts the function, also inside a regular expression; the program's own handler
    and timer are restored. Elsewhere, and where there are no alarms, the function runs in a thread, which goes on when
    its time is up and ends with the program.
    """
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        return _interrupted(seconds, function, argument)
    return _abandoned(seconds, function, argument)


def _interrupted(seconds: float, function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, _expire)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            return function(argument)
        finally:
            # The alarm may go off here still, which is why another block waits for it.
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _Alarm:
        raise Overdue from None
    finally:
        # A handler that was not set from Python cannot be set again.
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if delay:
            left = delay - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, _AT_ONCE), interval)


def _expire(signum: int, frame: FrameType | None) -> NoReturn:
    del signum, frame
    raise _Alarm


def _abandoned(seconds: float, function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function(argument))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise Overdue
    return answers[0]
