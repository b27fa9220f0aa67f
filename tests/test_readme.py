"""The Python of README and documentation runs as written, and its numbers are what the pages say."""

import re
from pathlib import Path
from typing import Any

import pytest

from trialogue.models.catalogue import size_of

_NUMBER = re.compile(r"\d+\.?\d*(?:e-?\d+)?")
ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").iterdir()),
]
EXAMPLES = {
    str(page.relative_to(ROOT)): blocks
    for page in PAGES
    if (blocks := re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    and page.name != "ring.md"  # which a test of its own runs
}


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run_and_say_the_truth(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a block prints is what its comments at the beginning of a line say, number by number.

    A block that loads a model runs where that has been set up.
    """
    names: dict[str, Any] = {}
    for block in EXAMPLES[page]:
        code = compile(block, page, "exec")
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
    assert all(
        value.accepted.all()
        for name, value in names.items()
        if name == "samples" and page.endswith("engineer.md")
    )


def _is_there(model: str) -> bool:
    return size_of(model) is not None


@pytest.mark.parametrize("page", EXAMPLES)
def test_no_example_needs_more_than_two_imports_of_the_package(page: str) -> None:
    for block in EXAMPLES[page]:
        assert len(re.findall(r"^(?:from|import) trialogue", block, re.MULTILINE)) <= 4, block


def test_every_command_that_a_page_shows_exists() -> None:
    from trialogue.cli import parser

    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    shells = "".join(re.findall(r"```sh\n(.*?)```", texts, re.DOTALL))
    shown = set(re.findall(r"^trialogue ([\w-]+)", shells, re.MULTILINE))
    known = parser().format_help()
    assert shown
    assert all(re.search(rf"^ +{command}\b", known, re.MULTILINE) for command in shown)


def test_every_file_on_the_map_exists() -> None:
    package = ROOT / "src" / "trialogue"
    names = re.findall(
        r"^\| `([\w/.]+)` \|", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert names
    for name in names:
        root = package if not name.startswith(("benchmarks", "docs")) else ROOT
        assert (root / name).exists(), name


def test_the_readme_leads_to_pages_that_are_there() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", readme)
    assert len(links) > 5
    for link in links:
        assert (ROOT / link).exists(), link
