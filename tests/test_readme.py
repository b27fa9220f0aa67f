"""The Python blocks of README and documentation run as written, and their output equals the numbers on the page."""

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
    and page.name != "ring.md"  # test_ring_page.py runs this page.
}
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = {
    command.strip(): str(page.relative_to(ROOT))
    for page in PAGES
    for text in [page.read_text(encoding="utf-8")]
    for command in (
        # Indented lines continue a command.
        *re.findall(
            r"^trialogue .*\n(?:[ \t].*\n)*",
            "".join(code for language, code in _BLOCK.findall(text) if language == "sh"),
            re.MULTILINE,
        ),
        *(" ".join(span.split()) for span in re.findall(r"`(trialogue\s[^`]+)`", _BLOCK.sub("", text))),
    )
}
"""Page of every command in the documentation, from code blocks and from inline code."""


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_print_the_numbers_in_their_comments(page, capsys):
    """The numbers that a block prints equal the numbers in its comments.

    A block that loads a pretrained model is skipped if the model is not installed.
    """
    names: dict[str, Any] = {}
    for block in EXAMPLES[page]:
        code = compile(block, page, "exec")
        if not all(map(_is_installed, re.findall(r'load_pretrained\("(\w+)"\)', block))):
            continue
        exec(code, names)
        printed = [_NUMBER.findall(line) for line in capsys.readouterr().out.splitlines()]
        stated = [_NUMBER.findall(line) for line in re.findall(r"^# (.*)", block, re.MULTILINE)]
        assert len(stated) == len(printed), block
        for expected, measured in zip(stated, printed, strict=True):
            # A comment may contain further numbers after the printed ones.
            assert [float(number) for number in expected[: len(measured)]] == pytest.approx(
                [float(number) for number in measured], abs=5e-3
            )
    assert all(
        value.accepted.all()
        for name, value in names.items()
        if name == "samples" and page.endswith("engineer.md")
    )


def _is_installed(model: str) -> bool:
    return size_of(model) is not None


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_have_at_most_four_imports_of_the_package(page):
    for block in EXAMPLES[page]:
        assert len(re.findall(r"^(?:from|import) trialogue", block, re.MULTILINE)) <= 4, block


def test_every_python_block_is_executed_by_a_test():
    """Blocks marked `py` need a server. `tests/serving/test_serving_example.py` runs the only block of this kind."""
    fenced = {
        str(page.relative_to(ROOT)): languages
        for page in PAGES
        if (languages := re.findall(r"^```(py\S*)", page.read_text(encoding="utf-8"), re.MULTILINE))
    }
    assert {name for names in fenced.values() for name in names} == {"python", "py"}
    assert [page for page, names in fenced.items() for name in names if name == "py"] == ["docs/engineer.md"]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_option_in_the_documentation_is_in_the_help_of_its_command(line, capsys, monkeypatch):
    """The help text of the command, with the given sampler or study, lists every option that the page uses."""
    monkeypatch.setenv("COLUMNS", "80")  # A wider terminal prints groups of options side by side.
    words = shlex.split(line.replace("\\\n", " "), comments=True)[1:]
    help_words = _words_for_help(words)
    try:
        code: object = main([*help_words, "--help"])
    except SystemExit as stopped:
        code = stopped.code
    page = capsys.readouterr().out
    assert not code, f"{COMMANDS[line]}: {help_words}"
    listed = re.findall(r"^[│ ]{0,3}(-\S.*?)(?:  |│|$)", page, re.MULTILINE)
    known = {option for names in listed for option in re.findall(r"--[\w-]+", names)}
    used = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
    assert used <= known, COMMANDS[line]


def _words_for_help(words: list[str]) -> list[str]:
    """Return the command and the study or sampler, which determine the options that `--help` lists."""
    if words[0] in ("run", "models"):
        return words[:2]
    at = words.index("--sampler") if "--sampler" in words else len(words)
    return [words[0], *words[at : at + 2]]


def test_every_file_in_the_list_of_extending_exists():
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    packages = (ROOT / "src" / "trialogue", ROOT / "lab" / "src" / "trialogue_lab")
    names = [name for cell in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE) for name in cell.split(", ")]
    assert len(names) > 20
    for name in names:
        assert any((package / name.strip("`")).exists() for package in packages), name


def test_every_link_of_the_readme_leads_to_a_file():
    readme = PAGES[0].read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", readme)
    assert len(links) > 5
    for link in links:
        assert (ROOT / link).exists(), link
