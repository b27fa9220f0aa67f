"""Client of a worker process in another Python environment, with requests and responses as lines of JSON."""

import json
import subprocess
from pathlib import Path
from typing import Any


class Peer:
    """A script of this folder that runs in a separate process.

    Args:
        python: Python interpreter.
        script: File name of the script.
        *arguments: Command-line arguments of the script.
    """

    def __init__(self, python: str, script: str, *arguments: object) -> None:
        command = [python, str(Path(__file__).with_name(script)), *map(str, arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._script = script

    def request(self, *message: object) -> Any:
        """Send a request and return the response. Exit if the process has stopped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)
        while not (line := self._process.stdout.readline()).startswith("["):
            if not line:
                raise SystemExit(f"{self._script} stopped: see its output above")
        return json.loads(line)

    def close(self) -> None:
        """Close the standard input of the process, and wait until it exits."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
