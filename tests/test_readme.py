"""The README's Python runs as written, and its numbers are what it says."""

import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_examples_run_and_say_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out.splitlines()
    said = re.findall(r"^# (\w+\(.*?\)) +([\d.]+) queries, ([\d.]+)", README, re.MULTILINE)
    assert len(said) == len(shown) == 2
    for (walk, queries, distance), line in zip(said, shown, strict=True):
        printed, numbers = line.rsplit(")", 1)
        measured = [float(number) for number in numbers.split()]
        assert walk == f"{printed})"
        assert [float(queries), float(distance)] == pytest.approx(measured, abs=5e-3)
    assert bool(names["samples"].accepted.all())


def test_every_command_it_shows_exists() -> None:
    from trialogue.cli import parser

    shells = "".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    shown = set(re.findall(r"^trialogue (\w+)", shells, re.MULTILINE))
    known = parser().format_help()
    assert shown
    assert all(re.search(rf"^ +{command}\b", known, re.MULTILINE) for command in shown)


def test_every_file_on_its_map_exists() -> None:
    package = Path(__file__).parents[1] / "src" / "trialogue"
    for name in re.findall(r"^\| `([\w/.]+)` \|", README, re.MULTILINE):
        root = package if not name.startswith(("benchmarks", "docs")) else package.parents[1]
        assert (root / name).exists(), name
