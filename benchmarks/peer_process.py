"""A contender in a process and an environment of its own: it is told lines of JSON, and answers in lines of JSON."""

import json
import subprocess
from pathlib import Path
from typing import Any


class Peer:
    """The `script` of this folder, run by another `python` with `arguments`."""

    def __init__(self, python: str, script: str, *arguments: object) -> None:
        command = [python, str(Path(__file__).with_name(script)), *map(str, arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._script = script

    def ask(self, *request: object) -> Any:
        """What it answers; the program ends where it stops."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        while not (line := self._process.stdout.readline()).startswith("["):
            if not line:
                raise SystemExit(f"{self._script} stopped: see what it printed above")
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
