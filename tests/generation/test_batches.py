"""Samples drawn by several workers equal those drawn by one process."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from generation.command import CAT, COSTS, RULES, read_samples
from trialogue.executors import EXECUTORS, Executor, Start, Workers

UNTIL = f"{CAT} --prompt 'a list' --until 2 --verifier python:rules.py:lower"
SHORT = "--max-new-tokens 4 --max-tries 12"


def lines(path: str) -> list[dict[str, object]]:
    """Return the records of a file without the costs that depend on earlier samples of the process."""
    records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return sorted(
        ({name: value for name, value in record.items() if name not in COSTS} for record in records),
        key=lambda record: (record["id"], record["sample"]),
    )


def test_two_processes_draw_the_same_samples_as_one(shell):
    """In batches of one, samples are equal to the last bit."""
    run = f"{UNTIL} {SHORT} --batch-size 1"
    apart = shell(f"{run} --workers 2 --out apart.jsonl")
    assert shell(f"{run} --out alone.jsonl").code == apart.code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl") != []
    # In larger batches, log-probabilities may differ in the last digits.
    assert shell(f"{UNTIL} {SHORT} --workers 2 --batch-size 5 --out batches.jsonl").code == 0
    assert read_samples(Path("batches.jsonl")) == read_samples(Path("alone.jsonl"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # warnings of Ray itself
def test_ray_actors_draw_the_same_samples_as_one_process(shell):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    run = f"{UNTIL} {SHORT} --batch-size 1 --ordered"
    shell(f"{run} --out alone.jsonl")
    shell(f"{run} --executor ray --workers 2 --out apart.jsonl").checked()
    assert lines("apart.jsonl") == lines("alone.jsonl")
    # Any executor can resume an interrupted run.
    whole = Path("apart.jsonl").read_bytes()
    Path("apart.jsonl").write_bytes(whole[: len(whole) // 2])
    assert shell(f"{run} --out apart.jsonl").code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl")


def test_errors_are_reported_once_before_workers_start(shell):
    result = shell(f"{CAT} --n 4 --batch-size 2 --workers 2 --verifier python:rules.py:absent")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "absent" in result.err
    result = shell(f"{CAT} --stream --executor ray")
    assert result.err.startswith("trialogue: error: stream=True: leave it out")
    assert shell(f"{CAT} --executor slurm").err.count("no such executor: use one of local, ray") == 1


class OtherFiles(Executor):
    """An executor in the same process that sees other verifier files, like another machine may."""

    @contextmanager
    def start_workers(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Workers]:
        yield OtherFilesCrew(start)


class OtherFilesCrew(Workers):
    def __init__(self, start: Start) -> None:
        self._start = start

    def done(self, lanes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        Path("rules.py").write_text(RULES.replace("text.lower()", "text.upper()"), encoding="utf-8")
        do = self._start()
        Path("rules.py").write_text(RULES, encoding="utf-8")
        yield from ((item, do(item)) for lane in lanes for item in lane)


@pytest.mark.parametrize("own", [False, True])
def test_samples_of_other_verifier_files_are_rejected(own, shell, monkeypatch):
    monkeypatch.setitem(EXECUTORS, "other-files", OtherFiles)
    rule = "python:rules.py:lower"
    ruled = f"{CAT} --verifier {rule}"
    if own:
        Path("prompts.jsonl").write_text(json.dumps({"prompt": "the", "rule": rule}) + "\n", encoding="utf-8")
        ruled = "--prompts prompts.jsonl"
    run = f"{ruled} --n 2 --max-new-tokens 2 --out apart.jsonl"
    shell(f"{run} --executor other-files").require_error("use the same verifier files on all machines")
    assert not Path("apart.jsonl").exists() or lines("apart.jsonl") == []
    assert shell(run).code == 0
