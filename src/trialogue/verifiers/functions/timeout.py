"""Calls of user functions with a time limit."""

import signal
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from types import FrameType
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

# A delay of 0 would disable the timer.
_MIN_DELAY = 1e-6
# Seconds between alarms. With shorter intervals, the function might make no progress between two alarms.
_MIN_INTERVAL = 0.01


class CallTimeoutError(Exception):
    """Error that is raised if a call exceeds its time limit."""


class _Alarm(BaseException):
    """Exception that interrupts a call. Functions that catch `Exception` do not suppress it."""


def call_within(seconds: float, function: Callable[[Argument], Result], argument: Argument) -> Result:
    """Call a function with a time limit, and return its result.

    In the main thread, a signal interrupts the function, even inside a regular expression. It is interrupted
    again every `seconds` if it catches the exception. In other threads and on systems without timers, the
    function runs in a daemon thread, which is abandoned after the time limit.

    Args:
        seconds: Time limit in seconds.
        function: Function to call.
        argument: Its only argument.

    Raises:
        CallTimeoutError: If the call takes longer than `seconds`. Exceptions of the function are propagated.
    """
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        return _call_with_signal(seconds, function, argument)
    return _call_in_thread(seconds, function, argument)


def _call_with_signal(seconds: float, function: Callable[[Argument], Result], argument: Argument) -> Result:
    rang, calling = False, True

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal rang
        rang = True
        # The alarm may also go off in this function after the call, or while the previous handler is restored. It must
        # only interrupt the called function.
        if calling and frame is not None and frame.f_code is not _call_with_signal.__code__:
            raise _Alarm

    delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds, _MIN_INTERVAL))
        result = _call(function, argument)
    except KeyboardInterrupt:
        raise
    except BaseException:
        if not rang:
            raise
    finally:
        calling = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        # A handler that was not set from Python cannot be restored.
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if delay:
            left = delay - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, _MIN_DELAY), interval)
    if rang:
        raise CallTimeoutError
    return result


def _call(function: Callable[[Argument], Result], argument: Argument) -> Result:
    """Call `function`. The signal handler needs this Python frame, because built-in functions have none."""
    return function(argument)


def _call_in_thread(seconds: float, function: Callable[[Argument], Result], argument: Argument) -> Result:
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function(argument))
        except BaseException as error:
            errors.append(error)

    # The thread uses the context variables of the caller.
    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise CallTimeoutError
    return results[0]
