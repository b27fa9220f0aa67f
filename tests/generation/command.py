"""The command `trialogue generate` in tests, with a tiny model and a file of verifiers."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PROMPT = ("--prompt", "the cat")
CAT = "--prompt 'the cat'"
REGEX = "regex:[a-c]{1,3}"
RULES = """
import os
import time
from pathlib import Path

def lower(text):
    return text == text.lower()

def few_a(tokens):
    return tokens.count(68) < 2

def gated(text):
    out = Path("out.jsonl")
    parent = os.getppid()
    while out.exists() and out.read_bytes().count(b"\\n") >= 3 and not Path("go").exists():
        if os.getppid() != parent:
            break
        time.sleep(0.01)
    return True

def share_of_a(text):
    return (1 + text.count("a")) / 100

def one_token(tokens):
    return len(tokens) < 2

def raising(text):
    raise KeyError("no\\nsuch key")

def late(text):
    if len(text) > 3:
        raise ValueError("too late")
    return True

def hanging(text):
    while True:
        pass

def no_cat(text):
    return "cat" not in text

def never(text):
    return False

def has_dog(text):
    return "dog" in text
"""


class CommandResult(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def checked(self) -> "CommandResult":
        assert self.code == 0, self.err
        return self

    def require_error(self, words: str) -> None:
        """Assert that the command failed with one line that contains `words`."""
        assert (self.code, self.err.count("\n")) == (2, 1), self.err
        assert words in self.err


Run = Callable[..., CommandResult]


def environment() -> dict[str, str]:
    """Return the environment of a process that imports the same modules as this one."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def start(
    folder: Path, words: str, program: Sequence[str] = ("-m", "trialogue.cli")
) -> "subprocess.Popen[str]":
    (folder / "rules.py").write_text(RULES, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, *program, "generate", *shlex.split(words)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


COSTS = ("seconds", "forward_passes", "positions", "distinct_queries")


def read_samples(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    # The costs of a sample depend on the other samples in its batch.
    plain = [{key: value for key, value in line.items() if key not in COSTS} for line in lines]
    for line in plain:
        line["log_prob"] = None if line["log_prob"] is None else round(line["log_prob"], 4)
    return sorted(plain, key=lambda line: (line["id"], line["sample"]))


GATED = (
    "--prompt 'the cat' --prompt 'a list' --n 6 --max-new-tokens 5 --batch-size 2 "
    "--verifier python:rules.py:gated --verifier-whole --verifier-timeout 1000"
)
"""Options of a run that stores three samples and then waits for a file `go`."""
