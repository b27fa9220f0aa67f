"""The README's Python runs as written, and its numbers are what it says."""

import re
from pathlib import Path
from typing import Any

import pytest

from trialogue.models.catalogue import size_of

_NUMBER = re.compile(r"\d+\.?\d*(?:e-?\d+)?")
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_examples_run_and_say_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    """What a block prints is what its comments at the beginning of a line say, number by number.

    A block that loads a model runs where that has been set up.
    """
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        code = compile(block, "README.md", "exec")
        if not all(map(_is_there, re.findall(r'load_pretrained\("(\w+)"\)', block))):
            continue
        exec(code, names)
        shown = [_NUMBER.findall(line) for line in capsys.readouterr().out.splitlines()]
        said = [_NUMBER.findall(line) for line in re.findall(r"^# (.*)", block, re.MULTILINE)]
        assert len(said) == len(shown), block
        for told, measured in zip(said, shown, strict=True):
            # More numbers may follow in what is said.
            assert [float(one) for one in told[: len(measured)]] == pytest.approx(
                [float(one) for one in measured], abs=5e-3
            )
    assert bool(names["samples"].accepted.all())


def _is_there(model: str) -> bool:
    return size_of(model) is not None


def test_no_example_needs_more_than_two_imports() -> None:
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        assert len(re.findall(r"^(?:from|import) ", block, re.MULTILINE)) <= 2, block


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
