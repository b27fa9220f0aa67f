"""Calls of a function in a user's Python file, in a separate process that can be stopped."""

import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.verifiers.functions.answers import call_error, timeout_error

_GRACE = 0.2  # Seconds to wait for the process to exit after its connection is closed, before it is killed.
_BEGIN = """
import json, sys
from multiprocessing.connection import Connection
sys.path[:] = json.loads(sys.argv[2])
from trialogue.verifiers.functions.file_worker import serve
serve(Connection(int(sys.argv[1])), *sys.argv[3:])
"""


class FileFunction:
    """Function of a user's Python file that is called in a separate process.

    The process executes the file once and keeps its state between calls. It is replaced by a new one after a
    call that exceeds the timeout, is interrupted or ends the process. Arguments and results are sent as JSON,
    one call at a time.

    Args:
        path: Path of the Python file.
        name: Name of the function.

    Attributes:
        most: Upper bound of the function's values: 1 if it is annotated to return bool, else None.

    Raises:
        InputError: If the file or the function does not exist, or the file cannot be executed.
    """

    def __init__(self, path: str | Path, name: str) -> None:
        self.__name__, self._shown = name, str(path)
        self._path, self._turn = Path(path).resolve(), threading.Lock()
        self._worker: _Worker | None = None
        self.most = self._get_worker().most

    def __call__(self, argument: Any) -> Any:
        """Call the function with a text or a tuple of token ids."""
        return self.call_all([argument], None)[0]

    def call_all(self, arguments: Sequence[Any], timeout: float | None) -> list[Any]:
        """Call the function once for each argument, in the separate process.

        Args:
            arguments: Arguments, one for each call. An argument is a text or a tuple of token ids.
            timeout: Maximum duration of each call in seconds, or None for no limit.

        Returns:
            The results of the calls as floats, in the same order. If a call returns something else than a number, the
            list ends there. Its last entry is then a placeholder that is printed like the invalid result.

        Raises:
            InputError: If a call raises an exception, exceeds the timeout or ends the process. The error names the
                function and the argument.
        """
        if not arguments:
            return []
        with self._turn:
            try:
                return self._request(self._get_worker(), arguments, timeout)
            except InputError:
                raise
            except BaseException:
                # Results that are still on their way would be mistaken for the results of the next request.
                if self._worker is not None:
                    self._end()
                raise

    def _request(self, worker: "_Worker", arguments: Sequence[Any], timeout: float | None) -> list[Any]:
        worker.send(arguments, timeout)
        results: list[Any] = []
        for argument in arguments:
            try:
                reply = worker.receive(timeout)
            except TimeoutError:
                self._end()
                raise timeout_error(self, argument, timeout or 0.0) from None
            except (EOFError, OSError):
                raise call_error(self, argument, f"it ended its process ({self._end()})") from None
            if "raised" in reply:
                raise call_error(self, argument, f"it raised {reply['raised']}")
            if "odd" in reply:
                return [*results, _NotANumber(reply["odd"])]
            results.append(reply["value"])
        return results

    def _get_worker(self) -> "_Worker":
        if self._worker is None:
            self._worker = _Worker(self._path, self._shown, self.__name__)
            weakref.finalize(self, self._worker.end)
        return self._worker

    def _end(self) -> str:
        """End the process and return a description of its exit status."""
        assert self._worker is not None
        code = self._worker.end()
        self._worker = None
        return f"signal {-code}" if code < 0 else f"exit code {code}"


class _NotANumber:
    """Result that is not a number, represented by its `repr`."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        return self._shown


class _Worker:
    """Process that executes the user's function, with the connection to it."""

    def __init__(self, path: Path, shown: str, name: str) -> None:
        self._connection, remote = Pipe()
        with remote:
            channel = str(remote.fileno())
            # Samples may be written to standard output, so the process writes to standard error.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, channel, json.dumps(sys.path), str(path), shown, name],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[remote.fileno()],
            )
        try:
            reply = self._reply()
        except EOFError:
            code = self.end()
            raise InputError(
                "python", shown, f"it cannot be run: its process ended with code {code}"
            ) from None
        except BaseException:
            self.end()
            raise
        if "hint" in reply:
            self.end()
            raise InputError(reply["field"], reply["value"], reply["hint"])
        self.most: float | None = reply["most"]

    def send(self, arguments: Sequence[Any], timeout: float | None) -> None:
        """Request the values of `arguments`, with `timeout` seconds for each. Call `receive` once for each."""
        request = json.dumps({"given": arguments, "timeout": timeout}).encode()
        # If the process has ended, `receive` reports it.
        with suppress(OSError):
            self._connection.send_bytes(request)

    def receive(self, timeout: float | None) -> dict[str, Any]:
        """Return the next reply. Raises `TimeoutError`, or `EOFError` if the process has ended."""
        if not self._connection.poll(timeout):
            raise TimeoutError
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(self._connection.recv_bytes())
        return reply

    def end(self) -> int:
        """End the process, by force if necessary, and return its exit code (negative for a signal)."""
        self._connection.close()
        try:
            return self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
