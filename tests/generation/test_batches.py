"""Samples that workers draw are those that one process draws, whoever draws which."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from generation.command import CAT, COSTS, RULES, Say, content
from trialogue.executors import EXECUTORS, Crew, Executor, Start

UNTIL = f"{CAT} --prompt 'a list' --until 2 --verifier python:rules.py:lower"
SHORT = "--max-new-tokens 4 --max-tries 12"


def lines(path: str) -> list[dict[str, object]]:
    """The records of a file, but for what a sample shares with those before it in the same process."""
    records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return sorted(
        ({name: value for name, value in record.items() if name not in COSTS} for record in records),
        key=lambda record: (record["id"], record["sample"]),
    )


def test_processes_draw_what_one_does(shell: Say) -> None:
    """Rows that move together lend each other nothing: alone in their batches, samples are equal to the last bit."""
    run = f"{UNTIL} {SHORT} --batch-size 1"
    apart = shell(f"{run} --workers 2 --out apart.jsonl")
    assert shell(f"{run} --out alone.jsonl").code == apart.code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl") != []
    # In batches they are the same samples, whose log-probabilities may differ in the last digits.
    assert shell(f"{UNTIL} {SHORT} --workers 2 --batch-size 5 --out batches.jsonl").code == 0
    assert content(Path("batches.jsonl")) == content(Path("alone.jsonl"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Ray's own
def test_actors_draw_what_one_process_does(shell: Say) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    run = f"{UNTIL} {SHORT} --batch-size 1 --ordered"
    shell(f"{run} --out alone.jsonl")
    apart = shell(f"{run} --executor ray --workers 2 --out apart.jsonl")
    assert apart.code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl")
    # What a killed run left is gone on with by any executor.
    whole = Path("apart.jsonl").read_bytes()
    Path("apart.jsonl").write_bytes(whole[: len(whole) // 2])
    assert shell(f"{run} --out apart.jsonl").code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl")


def test_what_is_wrong_is_said_once_and_by_no_process(shell: Say) -> None:
    told = shell(f"{CAT} --n 4 --batch-size 2 --workers 2 --verifier python:rules.py:absent")
    assert told.code == 2
    assert told.err.count("\n") == 1
    assert "absent" in told.err
    told = shell(f"{CAT} --stream --executor ray")
    assert told.err.startswith("trialogue: error: stream=True: leave it out")
    assert shell(f"{CAT} --executor slurm").err.count("no such executor: there are local, ray") == 1


class Behind(Executor):
    """Does all work here, with files of rules as another machine may still have them."""

    @contextmanager
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Crew]:
        yield BehindCrew(start)


class BehindCrew(Crew):
    def __init__(self, start: Start) -> None:
        self._start = start

    def done(self, lanes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        Path("rules.py").write_text(RULES.replace("text.lower()", "text.upper()"), encoding="utf-8")
        do = self._start()
        Path("rules.py").write_text(RULES, encoding="utf-8")
        yield from ((item, do(item)) for lane in lanes for item in lane)


@pytest.mark.parametrize("own", [False, True])
def test_samples_under_rules_of_other_files_are_refused(
    own: bool, shell: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXECUTORS, "behind", Behind)
    rule = "python:rules.py:lower"
    ruled = f"{CAT} --verifier {rule}"
    if own:
        Path("prompts.jsonl").write_text(json.dumps({"prompt": "the", "rule": rule}) + "\n", encoding="utf-8")
        ruled = "--prompts prompts.jsonl"
    run = f"{ruled} --n 2 --max-new-tokens 2 --out apart.jsonl"
    told = shell(f"{run} --executor behind")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "a worker reads other files than this process" in told.err
    assert not Path("apart.jsonl").exists() or lines("apart.jsonl") == []
    assert shell(run).code == 0
