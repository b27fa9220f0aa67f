"""A call of a user's function that may not take longer than it is allowed to."""

import signal
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from types import FrameType
from typing import TypeVar

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")

# A delay of zero would switch a timer off.
_AT_ONCE = 1e-6
# Seconds between alarms: a function that gets no further from one to the next would never end.
_LEAST_INTERVAL = 0.01


class Overdue(Exception):
    """A call has not returned in time."""


class _Alarm(BaseException):
    """Ends the call; no `Exception`, so that a function that catches those does not go on."""


def call_within(seconds: float, function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    """Return `function(argument)`; raises `Overdue` where it takes longer than `seconds`, and what it raises itself.

    In the main thread an alarm interrupts the function, also inside a regular expression; the program's own handler
    and timer are restored. What the function makes of an alarm that it catches is no answer, and it is interrupted
    again every `seconds`; but one that catches every alarm and never ends cannot be ended. Elsewhere, and where there
    are no alarms, the function runs in a thread, which goes on when its time is up and ends with the program.
    """
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        return _interrupted(seconds, function, argument)
    return _abandoned(seconds, function, argument)


def _interrupted(seconds: float, function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    rang, calling = False, True

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal rang
        rang = True
        # Here an alarm may go off before the timer is stopped, and after it in the frames of what restores the
        # program's own: it ends the function, and nothing around it.
        if calling and frame is not None and frame.f_code is not _interrupted.__code__:
            raise _Alarm

    delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds, _LEAST_INTERVAL))
        answer = _called(function, argument)
    except KeyboardInterrupt:
        raise
    except BaseException:
        if not rang:
            raise
    finally:
        calling = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        # A handler that was not set from Python cannot be set again.
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if delay:
            left = delay - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, _AT_ONCE), interval)
    if rang:
        raise Overdue
    return answer


def _called(function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    """A frame of its own around a function that may have none."""
    return function(argument)


def _abandoned(seconds: float, function: Callable[[Argument], Answer], argument: Argument) -> Answer:
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(function(argument))
        except BaseException as error:
            errors.append(error)

    # Whatever holds around the call holds in the thread.
    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise Overdue
    return answers[0]
