"""A run of `trialogue generate` that is cut short goes on where it stopped, and text is shown while it grows."""

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

from generation.command import CAT, GATED, Say, content, start
from models.tiny_pretrained import tiny_oracle
from trialogue.generation import drawing, streaming
from trialogue.samplers import Samples, generate


def wait_for(lines: int, path: Path, process: "subprocess.Popen[str]") -> None:
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_a_killed_run_goes_on_where_it_stopped(shell: Say, model: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    process = start(tmp_path, f"--model {model} {GATED} --out out.jsonl")
    wait_for(3, out, process)
    # Leaving the context closes the pipes. The process of the verifier may hold its own ends until `go` exists.
    with process:
        process.kill()
    torn = out.read_bytes()
    kept = torn.count(b"\n")
    assert 3 <= kept < 12
    out.write_bytes(torn + torn[:25])
    (tmp_path / "go").touch()
    resumed = shell(f"{GATED} --out out.jsonl")
    assert resumed.code == 0, resumed.err
    assert resumed.err.startswith(f"12 samples, 12 accepted ({kept} of the samples were there already), ")
    assert out.read_bytes().startswith(torn)
    whole = tmp_path / "whole.jsonl"
    assert shell(f"{GATED} --out whole.jsonl --batch-size 12").code == 0
    assert content(out) == content(whole)
    # Nothing is left to do: not even the model is needed.
    assert shell(f"{GATED} --out out.jsonl --n 3 --device nowhere").err.startswith(
        "6 samples, 6 accepted (6 of the samples"
    )
    told = shell(f"{GATED} --out out.jsonl --temperature 0.5")
    assert told.code == 2
    assert (
        "temperature=0.5: out.jsonl was begun with 1.0: choose another file, or begin anew with --force"
        in told.err
    )
    assert shell(f"{GATED} --out out.jsonl --temperature 0.5 --force --n 1").code == 0
    assert len(content(out)) == 2


def test_force_keeps_the_old_samples_until_there_is_a_new_one(shell: Say, tmp_path: Path) -> None:
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
    assert len(content(tmp_path / "out.jsonl")) == 1


def appended_to(shell: Say, folder: Path) -> bool:
    """Whether a file of two samples a prompt becomes the file of four that is drawn at once."""
    options = "--prompt the --prompt a --max-new-tokens 5"
    for file, n in (("some.jsonl", "2"), ("some.jsonl", "4"), ("all.jsonl", "4")):
        assert shell(f"{options} --out {file} --n {n}").code == 0
    return content(folder / "some.jsonl") == content(folder / "all.jsonl")


def test_more_samples_are_appended(shell: Say, tmp_path: Path) -> None:
    assert appended_to(shell, tmp_path)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_depends_on_the_id_and_not_on_the_other_prompts(
    weighted: bool, shell: Say, tmp_path: Path
) -> None:
    x, z = '{"id": "x", "prompt": "the"}\n', '{"id": "z", "prompt": "the"}\n'
    (tmp_path / "x.jsonl").write_text(x, encoding="utf-8")
    (tmp_path / "zx.jsonl").write_text(z + x, encoding="utf-8")
    options = "--n 6 --max-new-tokens 4"
    if weighted:
        options += " --sampler weighted-rejection --verifier 'regex:[a-z ]*' --resample"
    alone = shell(f"--prompts x.jsonl {options} --out out.jsonl")
    assert alone.code == 0, alone.err
    before = content(tmp_path / "out.jsonl")
    assert shell(f"--prompts zx.jsonl {options} --out out.jsonl").code == 0
    lines = content(tmp_path / "out.jsonl")
    assert [line for line in lines if line["id"] == "x"] == before
    assert [line["tokens"] for line in lines if line["id"] == "z"] != [line["tokens"] for line in before]
    assert shell(f"--prompts zx.jsonl {options} --out fresh.jsonl").code == 0
    fresh = content(tmp_path / "fresh.jsonl")
    # What is asked of a verifier once per run is asked for the first sample that comes to it.
    for line in (*lines, *fresh):
        del line["verifier_calls"]
    assert fresh == lines


def test_a_mutant_that_keys_samples_by_place_is_found(
    shell: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        drawing, "generate", lambda *args, **options: generate(*args, **options | {"sample_ids": None})
    )
    assert not appended_to(shell, tmp_path)


def test_ctrl_c_keeps_what_is_there(model: str, tmp_path: Path) -> None:
    process = start(tmp_path, f"--model {model} {GATED} --out out.jsonl")
    wait_for(2, tmp_path / "out.jsonl", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    kept = (tmp_path / "out.jsonl").read_bytes().count(b"\n")
    assert err.strip() == (
        f"trialogue: interrupted: {kept} of 12 samples are kept in out.jsonl; the same command goes on"
    )
    assert out == ""


UNTIL = "--until 4 --max-tries 9 --verifier python:rules.py:lower --verifier-whole"


@pytest.mark.parametrize(
    ("asked", "resumed"),
    [("--n 6 --ordered", "in any order"), (UNTIL, "as it was"), (f"{UNTIL} --ordered", "as it was")],
)
def test_what_has_finished_before_its_turn_is_not_drawn_again(
    asked: str, resumed: str, shell: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--prompt 'the cat' --prompt 'a list' --max-new-tokens 12 --batch-size 4"
    options += " --stop e --seed 3"
    out, waiting = tmp_path / "out.jsonl", tmp_path / "out.jsonl.waiting.jsonl"
    whole = shell(f"{options} {asked} --out whole.jsonl")
    assert whole.code == 0, whole.err
    drawn: list[tuple[int, int]] = []
    filed = drawing.RecordObserver.filed

    def interrupted(recorder: drawing.RecordObserver, places: Tensor, samples: Samples) -> None:
        filed(recorder, places, samples)
        drawn.extend(recorder.keys[place] for place in places.tolist())
        if waiting.exists() and waiting.stat().st_size and not again:
            raise KeyboardInterrupt

    again: list[bool] = []
    monkeypatch.setattr(drawing.RecordObserver, "filed", interrupted)
    told = shell(f"{options} {asked} --out out.jsonl")
    assert (told.code, f"{len(drawn)} " in told.err) == (130, True), told.err
    assert out.read_bytes().count(b"\n") + waiting.read_bytes().count(b"\n") >= len(drawn)
    before, again = list(drawn), [True]
    # A line that was torn off is drawn again, and nothing else.
    waiting.write_bytes(waiting.read_bytes() + b'{"id": 0, "sa')
    left = asked if resumed == "as it was" else asked.replace("--ordered", "")
    assert shell(f"{options} {left} --out out.jsonl").code == 0
    assert len(drawn) == len(set(drawn)) > len(before)
    assert content(out) == content(tmp_path / "whole.jsonl")
    assert not waiting.exists()
    if "--ordered" in left:
        lines = out.read_bytes().split(b"\n")[:-1]
        keys = [(line["id"], line["sample"]) for line in map(json.loads, lines)]
        assert keys == sorted(keys)


def test_on_standard_output_what_waits_is_written_in_its_order(
    shell: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--prompt 'the cat' --max-new-tokens 12 --batch-size 4 --n 6 --stop e"
    filed, drawn = drawing.RecordObserver.filed, list[int]()

    def interrupted(recorder: drawing.RecordObserver, places: Tensor, samples: Samples) -> None:
        filed(recorder, places, samples)
        drawn.extend(places.tolist())
        if drawn != list(range(len(drawn))):
            raise KeyboardInterrupt

    monkeypatch.setattr(drawing.RecordObserver, "filed", interrupted)
    told = shell(f"{options} --ordered")
    assert told.code == 130
    assert [line["sample"] for line in told.lines] == sorted(drawn)
    assert f"interrupted: {len(drawn)} of 6 samples are written" in told.err


def test_a_reader_that_leaves_is_no_error(shell: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    first: list[dict[str, object]] = []

    def read() -> None:
        with os.fdopen(reading) as lines:
            first.append(json.loads(lines.readline()))

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        told = shell(GATED)
        # As a process does when it ends.
        stream.flush()
    reader.join()
    assert first[0]["accepted"]
    assert (told.code, told.err) == (1, "")


def test_on_a_terminal_the_text_is_all_that_standard_output_shows(
    shell: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, end = pty.openpty()
    with os.fdopen(terminal, "rb", buffering=0) as screen, os.fdopen(end, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        told = shell(f"{CAT} --stream --max-new-tokens=6")
        shown = b""
        while not shown.endswith(b"\n"):
            shown += screen.read(10_000)
    text = generate(tiny_oracle(), ["the cat"], max_new_tokens=6).texts()[0]
    assert told.err.startswith("1 sample, accepted, ")
    assert shown.decode().replace("\r\n", "\n") == text.translate(streaming._PRINTABLE) + "\n"
