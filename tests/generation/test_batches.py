"""Samples that workers draw are those that one process draws, whoever draws which."""

import json
from pathlib import Path

import pytest

from generation.command import COSTS, PROMPT, Say, content

UNTIL = (*PROMPT, "--prompt", "a list", "--until", "2", "--verifier", "python:rules.py:lower")
SHORT = ("--max-new-tokens", "4", "--max-tries", "12")


def lines(path: str) -> list[dict[str, object]]:
    """The records of a file, but for what a sample shares with those before it in the same process."""
    records = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return sorted(
        ({name: value for name, value in record.items() if name not in COSTS} for record in records),
        key=lambda record: (record["id"], record["sample"]),
    )


def test_processes_draw_what_one_does(say: Say) -> None:
    """Rows that move together lend each other nothing: alone in their batches, samples are equal to the last bit."""
    run = (*UNTIL, *SHORT, "--batch-size", "1")
    apart = say(*run, "--workers", "2", "--out", "apart.jsonl")
    assert say(*run, "--out", "alone.jsonl").code == apart.code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl") != []
    # In batches they are the same samples, whose log-probabilities may differ in the last digits.
    assert say(*UNTIL, *SHORT, "--workers", "2", "--batch-size", "5", "--out", "batches.jsonl").code == 0
    assert content(Path("batches.jsonl")) == content(Path("alone.jsonl"))


@pytest.mark.filterwarnings("default")  # Ray's own
def test_actors_draw_what_one_process_does(say: Say) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    run = (*UNTIL, *SHORT, "--batch-size", "1", "--ordered")
    say(*run, "--out", "alone.jsonl")
    apart = say(*run, "--executor", "ray", "--workers", "2", "--out", "apart.jsonl")
    assert apart.code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl")
    # What a killed run left is gone on with by any executor.
    whole = Path("apart.jsonl").read_bytes()
    Path("apart.jsonl").write_bytes(whole[: len(whole) // 2])
    assert say(*run, "--out", "apart.jsonl").code == 0
    assert lines("apart.jsonl") == lines("alone.jsonl")


def test_what_is_wrong_is_said_once_and_by_no_process(say: Say) -> None:
    told = say(
        *PROMPT, "--n", "4", "--batch-size", "2", "--workers", "2", "--verifier", "python:rules.py:absent"
    )
    assert told.code == 2
    assert told.err.count("\n") == 1
    assert "absent" in told.err
    told = say(*PROMPT, "--stream", "--executor", "ray")
    assert told.err.startswith("trialogue: error: stream=True: leave it out")
    assert say(*PROMPT, "--executor", "slurm").err.count("no such executor: there are local, ray") == 1
