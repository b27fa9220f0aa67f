"""The Python of README and documentation runs as written, and its numbers are what the pages say."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from trialogue.cli import main
from trialogue.models.hub.catalogue import size_of

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
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = {
    command.strip(): str(page.relative_to(ROOT))
    for page in PAGES
    for text in [page.read_text(encoding="utf-8")]
    for command in (
        # A command of a block goes on over the lines that are indented.
        *re.findall(
            r"^trialogue .*\n(?:[ \t].*\n)*",
            "".join(code for language, code in _BLOCK.findall(text) if language == "sh"),
            re.MULTILINE,
        ),
        *(" ".join(span.split()) for span in re.findall(r"`(trialogue\s[^`]+)`", _BLOCK.sub("", text))),
    )
}
"""Every command of the pages, in blocks and within the text, with its page."""


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


def test_every_block_of_python_is_run() -> None:
    """Those fenced `py` need a server: `tests/serving/test_serving_example.py` runs the one there is before one."""
    fenced = {
        str(page.relative_to(ROOT)): others
        for page in PAGES
        if (others := re.findall(r"^```(py\S*)", page.read_text(encoding="utf-8"), re.MULTILINE))
    }
    assert {name for names in fenced.values() for name in names} == {"python", "py"}
    assert [page for page, names in fenced.items() for name in names if name == "py"] == ["docs/engineer.md"]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_that_a_page_shows_takes_its_options(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what its own help lists, with the options of the sampler, or the fields of the study, that it names."""
    monkeypatch.setenv("COLUMNS", "80")  # in wider ones the groups of options stand side by side
    words = shlex.split(line.replace("\\\n", " "), comments=True)[1:]
    asked = _asking(words)
    try:
        code: object = main([*asked, "--help"])
    except SystemExit as left:
        code = left.code
    page = capsys.readouterr().out
    assert not code, f"{COMMANDS[line]}: {asked}"
    listed = re.findall(r"^[│ ]{0,3}(-\S.*?)(?:  |│|$)", page, re.MULTILINE)
    known = {option for one in listed for option in re.findall(r"--[\w-]+", one)}
    used = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
    assert used <= known, COMMANDS[line]


def _asking(words: list[str]) -> list[str]:
    """What tells `--help` whose options are asked for: the command, and the study or the sampler that it is given."""
    if words[0] in ("run", "models"):
        return words[:2]
    at = words.index("--sampler") if "--sampler" in words else len(words)
    return [words[0], *words[at : at + 2]]


def test_every_file_on_the_map_exists() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    packages = (ROOT / "src" / "trialogue", ROOT / "lab" / "src" / "trialogue_lab")
    names = [name for cell in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE) for name in cell.split(", ")]
    assert len(names) > 20
    for name in names:
        assert any((package / name.strip("`")).exists() for package in packages), name


def test_the_readme_leads_to_pages_that_are_there() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", readme)
    assert len(links) > 5
    for link in links:
        assert (ROOT / link).exists(), link
