"""A function in a file of the user's own that runs in a process of its own, which can be ended."""

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
from trialogue.verifiers.answers import fault, overdue

_GRACE = 0.2  # seconds in which a process that has nobody to answer ends by itself
_BEGIN = """
import json, sys
from multiprocessing.connection import Connection
sys.path[:] = json.loads(sys.argv[2])
from trialogue.verifiers.file_worker import serve
serve(Connection(int(sys.argv[1])), *sys.argv[3:])
"""


class FileFunction:
    """The function `name` of the Python file at `path`, called in a process of its own, which ends with this object.

    What it keeps in memory it keeps from call to call, but not beyond one that takes too long, is interrupted or ends
    its process: the next is made in another process. Threads that share it take turns. What it is given and what it
    answers cross as JSON. `most` is its greatest value, if its annotation tells. Raises `InputError` where there is no
    such file or function, or it cannot be run.
    """

    def __init__(self, path: str | Path, name: str) -> None:
        self.__name__, self._shown = name, str(path)
        self._path, self._turn = Path(path).resolve(), threading.Lock()
        self._worker: _Worker | None = None
        self.most = self._begun().most

    def __call__(self, argument: Any) -> Any:
        """What it answers about `argument`, a text or a tuple of token ids."""
        return self.answers([argument], None)[0]

    def answers(self, arguments: Sequence[Any], timeout: float | None) -> list[Any]:
        """What it answers about each of `arguments`, within `timeout` seconds each, up to the first that is no number.

        Raises `InputError` that names the function and what it was given where it raises, takes too long or ends its
        process.
        """
        if not arguments:
            return []
        with self._turn:
            try:
                return self._answers(self._begun(), arguments, timeout)
            except InputError:
                raise
            except BaseException:
                # Answers that nobody waits for would be taken for those to the next question.
                if self._worker is not None:
                    self._end()
                raise

    def _answers(self, worker: "_Worker", arguments: Sequence[Any], timeout: float | None) -> list[Any]:
        worker.ask(arguments, timeout)
        answers: list[Any] = []
        for argument in arguments:
            try:
                told = worker.answer(timeout)
            except TimeoutError:
                self._end()
                raise overdue(self, argument, timeout or 0.0) from None
            except (EOFError, OSError):
                raise fault(self, argument, f"it ended its process ({self._end()})") from None
            if "raised" in told:
                raise fault(self, argument, f"it raised {told['raised']}")
            if "odd" in told:
                return [*answers, _Odd(told["odd"])]
            answers.append(told["value"])
        return answers

    def _begun(self) -> "_Worker":
        if self._worker is None:
            self._worker = _Worker(self._path, self._shown, self.__name__)
            weakref.finalize(self, self._worker.end)
        return self._worker

    def _end(self) -> str:
        """End the process; returns how it ended."""
        assert self._worker is not None
        code = self._worker.end()
        self._worker = None
        return f"signal {-code}" if code < 0 else f"exit code {code}"


class _Odd:
    """An answer that is no number, as it shows itself."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def __repr__(self) -> str:
        return self._shown


class _Worker:
    """The process, and the connection to it."""

    def __init__(self, path: Path, shown: str, name: str) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            channel = str(theirs.fileno())
            # Its output goes to standard error: standard output may be where samples go.
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN, channel, json.dumps(sys.path), str(path), shown, name],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[theirs.fileno()],
            )
        try:
            told = self._told()
        except EOFError:
            code = self.end()
            raise InputError(
                "python", shown, f"it cannot be run: its process ended with code {code}"
            ) from None
        except BaseException:
            self.end()
            raise
        if "hint" in told:
            self.end()
            raise InputError(told["field"], told["value"], told["hint"])
        self.most: float | None = told["most"]

    def ask(self, arguments: Sequence[Any], timeout: float | None) -> None:
        """Ask about `arguments`, each to be answered within `timeout` seconds; all answers are to be waited for."""
        question = json.dumps({"given": arguments, "timeout": timeout}).encode()
        with suppress(OSError):  # it has ended, which whoever waits for the answer is told
            self._connection.send_bytes(question)

    def answer(self, timeout: float | None) -> dict[str, Any]:
        """The next answer; raises `TimeoutError` and, where it has ended, `EOFError`."""
        if not self._connection.poll(timeout):
            raise TimeoutError
        return self._told()

    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._connection.recv_bytes())
        return told

    def end(self) -> int:
        """End the process, whatever it is doing; returns its exit code, negative for a signal, if it has ended."""
        self._connection.close()
        try:
            return self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
