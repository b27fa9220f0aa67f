"""Output files: samples of a killed run are kept, and samples of other runs are not changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.generation.output.sample_file import open_sample_file
from trialogue.generation.prompts import prompts_from_texts
from trialogue.generation.settings import digest

SAMPLING = {"sampler": "ancestral", "temperature": 1.0, "seed": 0}
PROMPTS = tuple(prompts_from_texts(["a", "b"]))


def record(place: int, sample: int, **changes: Any) -> dict[str, Any]:
    base = {
        "id": PROMPTS[place].id,
        "sample": sample,
        "prompt": PROMPTS[place].text,
        "text": "é\u2028",
        "run": digest(SAMPLING),
    }
    return base | changes


def write(path: Path, *records: dict[str, Any], force: bool = False) -> list[tuple[int, int]]:
    """Append records, and return the keys of the records that were kept."""
    with open_sample_file(path, SAMPLING, PROMPTS, force=force) as file:
        for one in records:
            file.append(one)
        return list(file.kept)


def test_lines_are_kept_and_appended(tmp_path):
    out = tmp_path / "out.jsonl"
    assert write(out, record(0, 0), record(1, 0)) == []
    assert write(out, record(0, 1)) == [(0, 0), (1, 0)]
    lines = out.read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines[:-1]] == [record(0, 0), record(1, 0), record(0, 1)]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.jsonl", "out.jsonl.settings.json"]


def test_waiting_samples_are_stored_in_a_second_file(tmp_path):
    out, waiting = tmp_path / "out.jsonl", tmp_path / "out.jsonl.waiting.jsonl"
    with open_sample_file(out, SAMPLING, PROMPTS) as file:
        file.hold((1, 0), record(1, 0))
    assert out.read_bytes() == b""
    with (
        pytest.raises(InputError, match=r"out\.jsonl was created with 0"),
        open_sample_file(out, SAMPLING | {"seed": 1}, PROMPTS),
    ):
        pass
    with open_sample_file(out, SAMPLING, PROMPTS) as file:
        assert (file.kept, file.held) == ({}, {(1, 0): record(1, 0)})
        file.hold((1, 1), record(1, 1))
        file.append(record(0, 0))
        file.append(record(1, 0))
    with open_sample_file(out, SAMPLING, PROMPTS) as file:
        assert (list(file.kept), list(file.held)) == ([(0, 0), (1, 0)], [(1, 1)])
    before = waiting.read_bytes()
    assert write(out, force=True) == []
    assert waiting.read_bytes() == before
    with open_sample_file(out, SAMPLING, PROMPTS, force=True) as file:
        file.append(record(0, 0))
        assert waiting.read_bytes() == b""
        file.discard_waiting()
    assert not waiting.exists()


@pytest.mark.parametrize("length", [1, 20, -1])
def test_an_incomplete_last_line_is_removed(length, tmp_path):
    out = tmp_path / "out.jsonl"
    write(out, record(0, 0), record(1, 0))
    complete = out.read_bytes()
    first = complete.index(b"\n") + 1
    out.write_bytes(complete[: first + length] if length > 0 else complete[:-1])
    assert write(out, record(1, 0)) == [(0, 0)]
    assert out.read_bytes() == complete


def test_force_starts_a_new_file(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("something else", encoding="utf-8")
    assert write(out, record(0, 0), force=True) == []
    assert out.read_bytes().count(b"\n") == 1
    assert write(out) == [(0, 0)]


def test_changed_settings_are_reported_by_name(tmp_path):
    out = tmp_path / "out.jsonl"
    write(out, record(0, 0))
    before = out.read_bytes()
    for other, words in (
        (SAMPLING | {"temperature": 0.7}, r"temperature=0.7: out.jsonl was created with 1.0"),
        (SAMPLING | {"quota": 3}, r"quota=3: out.jsonl was created with None"),
        ({"sampler": "ancestral", "temperature": 1.0}, r"seed=None: out.jsonl was created with 0"),
    ):
        with pytest.raises(InputError, match=words), open_sample_file(out, other, PROMPTS):
            pass
    assert out.read_bytes() == before


REFUSED: list[tuple[bytes, str]] = [
    (b"# Readme\n", "its settings file "),
    (b"Readme", "its settings file "),
    (b"?\n", "line 2 is not a sample"),
    (b"[1]\n", "line 2 is not a sample"),
    (json.dumps(record(0, 1, run="x")).encode() + b"\n", "line 2 belongs to a run"),
    (json.dumps(record(0, 1, prompt="c")).encode() + b"\n", "line 2 has a prompt that is not in the input"),
    (json.dumps(record(0, 1, id="c")).encode() + b"\n", "line 2 has a prompt that is not in the input"),
]


def test_a_file_of_another_run_is_not_changed(tmp_path):
    for number, (line, words) in enumerate(REFUSED):
        out = tmp_path / f"{number}.jsonl"
        if "settings" not in words:
            write(out, record(0, 0))
        content = (out.read_bytes() if out.exists() else b"") + line
        out.write_bytes(content)
        expect_error(words, write, out)
        assert out.read_bytes() == content


def test_two_processes_cannot_write_to_one_file(tmp_path):
    with (
        FileLock(tmp_path / ".out.jsonl.lock"),
        pytest.raises(InputError, match="another process is writing"),
    ):
        write(tmp_path / "out.jsonl")
