"""Interrupted runs of `trialogue generate` are resumed, and text is displayed while it grows."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from torch import Tensor

from generation.command import CAT, GATED, read_samples, start
from models.tiny_pretrained import tiny_oracle
from trialogue.generation import drawing
from trialogue.generation.output import live_text
from trialogue.samplers import Samples, generate


def wait_for(lines: int, path: Path, process: "subprocess.Popen[str]") -> None:
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_a_killed_run_is_resumed(shell, model, tmp_path):
    out = tmp_path / "out.jsonl"
    process = start(tmp_path, f"--model {model} {GATED} --out out.jsonl")
    wait_for(3, out, process)
    # Leaving the context closes the pipes. The verifier process may keep its ends open until `go` exists.
    with process:
        process.kill()
    torn = out.read_bytes()
    kept = torn.count(b"\n")
    assert 3 <= kept < 12
    out.write_bytes(torn + torn[:25])
    (tmp_path / "go").touch()
    resumed = shell(f"{GATED} --out out.jsonl").checked()
    assert resumed.err.startswith(f"12 samples, 12 accepted ({kept} of them from an earlier run), ")
    assert out.read_bytes().startswith(torn)
    complete = tmp_path / "complete.jsonl"
    assert shell(f"{GATED} --out complete.jsonl --batch-size 12").code == 0
    assert read_samples(out) == read_samples(complete)
    # Nothing remains to be done, so that no model is needed.
    assert shell(f"{GATED} --out out.jsonl --n 3 --device nowhere").err.startswith(
        "6 samples, 6 accepted (6 of them"
    )
    result = shell(f"{GATED} --out out.jsonl --temperature 0.5")
    assert result.code == 2
    assert (
        "temperature=0.5: out.jsonl was created with 1.0: use another file or overwrite it with --force"
        in result.err
    )
    assert shell(f"{GATED} --out out.jsonl --temperature 0.5 --force --n 1").code == 0
    assert len(read_samples(out)) == 2


def test_force_keeps_the_old_samples_until_the_first_new_one(shell, tmp_path):
    options = "--prompt the --max-new-tokens 3 --out out.jsonl"
    assert shell(f"{options} --n 3").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for mistake in (
        "--verifier 'regex:['",
        "--temperature -1",
        "--model ./nothing",
        f"--prompt '{'cat ' * 300}'",
        "--verifier python:rules.py:raising --sampler rejection",
    ):
        assert shell(f"{options} {mistake} --force").code == 2, mistake
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert shell(f"{options} --seed 1 --force").code == 0
    assert len(read_samples(tmp_path / "out.jsonl")) == 1


def test_further_samples_are_appended(shell, tmp_path):
    options = "--prompt the --prompt a --max-new-tokens 5"
    for file, n in (("some.jsonl", "2"), ("some.jsonl", "4"), ("all.jsonl", "4")):
        assert shell(f"{options} --out {file} --n {n}").code == 0
    assert read_samples(tmp_path / "some.jsonl") == read_samples(tmp_path / "all.jsonl")


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_depends_on_the_id_and_not_on_other_prompts(weighted, shell, tmp_path):
    x, z = '{"id": "x", "prompt": "the"}\n', '{"id": "z", "prompt": "the"}\n'
    (tmp_path / "x.jsonl").write_text(x, encoding="utf-8")
    (tmp_path / "zx.jsonl").write_text(z + x, encoding="utf-8")
    options = "--n 6 --max-new-tokens 4"
    if weighted:
        options += " --sampler weighted-rejection --verifier 'regex:[a-z ]*' --resample"
    shell(f"--prompts x.jsonl {options} --out out.jsonl").checked()
    before = read_samples(tmp_path / "out.jsonl")
    assert shell(f"--prompts zx.jsonl {options} --out out.jsonl").code == 0
    lines = read_samples(tmp_path / "out.jsonl")
    assert [line for line in lines if line["id"] == "x"] == before
    assert [line["tokens"] for line in lines if line["id"] == "z"] != [line["tokens"] for line in before]
    assert shell(f"--prompts zx.jsonl {options} --out fresh.jsonl").code == 0
    fresh = read_samples(tmp_path / "fresh.jsonl")
    # A verifier call that is made once per run is counted for its first sample.
    for line in (*lines, *fresh):
        del line["verifier_calls"]
    assert fresh == lines


def test_an_interrupt_keeps_the_finished_samples(shell, tmp_path):
    out = tmp_path / "out.jsonl"

    def interrupt() -> None:
        while not out.exists() or out.read_bytes().count(b"\n") < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    result = shell(f"{GATED} --out out.jsonl")
    (tmp_path / "go").touch()
    kept = out.read_bytes().count(b"\n")
    words = f"{kept} of 12 samples are saved in out.jsonl; run the same command to continue"
    assert result == (130, "", f"\ntrialogue: interrupted: {words}\n")


UNTIL = "--until 4 --max-tries 9 --verifier python:rules.py:lower --verifier-whole"


@pytest.mark.parametrize(
    ("options_of_run", "resumed"),
    [("--n 6 --ordered", "in any order"), (UNTIL, "as it was"), (f"{UNTIL} --ordered", "as it was")],
)
def test_samples_waiting_for_their_turn_are_not_drawn_again(
    options_of_run, resumed, shell, tmp_path, monkeypatch
):
    options = "--prompt 'the cat' --prompt 'a list' --max-new-tokens 12 --batch-size 4"
    options += " --stop e --seed 3"
    out, waiting = tmp_path / "out.jsonl", tmp_path / "out.jsonl.waiting.jsonl"
    shell(f"{options} {options_of_run} --out complete.jsonl").checked()
    drawn: list[tuple[int, int]] = []
    filed = drawing.RecordObserver.on_finished

    def interrupted(recorder: drawing.RecordObserver, places: Tensor, samples: Samples) -> None:
        filed(recorder, places, samples)
        drawn.extend(recorder.keys[place] for place in places.tolist())
        if waiting.exists() and waiting.stat().st_size and not again:
            raise KeyboardInterrupt

    again: list[bool] = []
    monkeypatch.setattr(drawing.RecordObserver, "on_finished", interrupted)
    result = shell(f"{options} {options_of_run} --out out.jsonl")
    assert (result.code, f"{len(drawn)} " in result.err) == (130, True), result.err
    assert out.read_bytes().count(b"\n") + waiting.read_bytes().count(b"\n") >= len(drawn)
    before, again = list(drawn), [True]
    # Only a sample with an incomplete line is drawn again.
    waiting.write_bytes(waiting.read_bytes() + b'{"id": 0, "sa')
    left = options_of_run if resumed == "as it was" else options_of_run.replace("--ordered", "")
    assert shell(f"{options} {left} --out out.jsonl").code == 0
    assert len(drawn) == len(set(drawn)) > len(before)
    assert read_samples(out) == read_samples(tmp_path / "complete.jsonl")
    assert not waiting.exists()
    if "--ordered" in left:
        lines = out.read_bytes().split(b"\n")[:-1]
        keys = [(line["id"], line["sample"]) for line in map(json.loads, lines)]
        assert keys == sorted(keys)


def test_waiting_samples_are_written_in_order_to_standard_output(shell, monkeypatch):
    options = "--prompt 'the cat' --max-new-tokens 12 --batch-size 4 --n 6 --stop e"
    filed, drawn = drawing.RecordObserver.on_finished, list[int]()

    def interrupted(recorder: drawing.RecordObserver, places: Tensor, samples: Samples) -> None:
        filed(recorder, places, samples)
        drawn.extend(places.tolist())
        if drawn != list(range(len(drawn))):
            raise KeyboardInterrupt

    monkeypatch.setattr(drawing.RecordObserver, "on_finished", interrupted)
    result = shell(f"{options} --ordered")
    assert result.code == 130
    assert [line["sample"] for line in result.lines] == sorted(drawn)
    assert f"interrupted: {len(drawn)} of 6 samples are written" in result.err


def test_a_closed_pipe_is_not_an_error(shell, monkeypatch):
    reading, writing = os.pipe()
    first: list[dict[str, object]] = []

    def read() -> None:
        with os.fdopen(reading) as lines:
            first.append(json.loads(lines.readline()))

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        result = shell(GATED)
        # A process does this when it ends.
        stream.flush()
    reader.join()
    assert first[0]["accepted"]
    assert (result.code, result.err) == (1, "")


def test_a_terminal_displays_only_the_text(shell, monkeypatch):
    terminal, end = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as screen, os.fdopen(end, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        result = shell(f"{CAT} --stream --max-new-tokens=6")
        shown = b""
        while not shown.endswith(b"\n"):
            shown += screen.read(10_000)
    text = generate(tiny_oracle(), ["the cat"], max_new_tokens=6).texts()[0]
    assert result.err.startswith("1 sample, accepted, ")
    assert shown.decode().replace("\r\n", "\n") == text.translate(live_text._PRINTABLE) + "\n"
