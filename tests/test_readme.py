"""The Python blocks of README and documentation run as written, and their output equals the numbers on the page."""

import json
import re
import shlex
from pathlib import Path

import pytest

from trialogue.cli import main
from trialogue.models.hub.catalogue import measure_size

_NUMBER = re.compile(r"\d+\.?\d*(?:e-?\d+)?")
ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name not in ("reference", "decisions", "templates")
    ),
]
_PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
"""A Python block, and the block of text after it if there is one, which shows the output."""
EXAMPLES = {
    str(page.relative_to(ROOT)): blocks
    for page in PAGES
    if (blocks := _PYTHON_BLOCK.findall(page.read_text(encoding="utf-8")))
    and page.name != "ring.md"  # tests/samplers/chains/test_metropolis.py runs this page.
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


def _words_for_help(words: list[str]) -> tuple[str, ...]:
    """Return the command and the study or sampler, which determine the options that `--help` lists."""
    if words[0] in ("run", "models"):
        return tuple(words[:2])
    at = words.index("--sampler") if "--sampler" in words else len(words)
    return (words[0], *words[at : at + 2])


COMMANDS_BY_HELP: dict[tuple[str, ...], dict[str, list[str]]] = {}
"""Words of the commands in the documentation, by the words that determine their help text.

`nucleus-depth` is a study of an example package, which need not be installed. `test_examples.py` runs it.
"""
for _line in COMMANDS:
    if "nucleus-depth" not in _line:
        _words = shlex.split(_line.replace("\\\n", " "), comments=True)[1:]
        COMMANDS_BY_HELP.setdefault(_words_for_help(_words), {})[_line] = _words


@pytest.mark.parametrize("page", EXAMPLES)
def test_every_block_runs_alone_and_prints_what_the_page_shows(page, capsys, monkeypatch, tmp_path):
    """Each block runs with no names of earlier blocks.

    The output is shown in a block of text after the code, or as numbers in comments. A block that loads a pretrained
    model is skipped if the model is not installed. Its texts may differ between processors, so only the number of lines
    is compared.
    """
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for block, output in EXAMPLES[page]:
        if _USES_MODEL.search(block) and measure_size("smollm2") is None:
            continue
        exec(compile(block, page, "exec"), {"__name__": "__main__"})
        printed, shown = capsys.readouterr().out.splitlines(), output.splitlines()
        if _USES_MODEL.search(block):
            assert len(printed) == len(shown), block
        elif shown:
            assert [_NUMBER.sub("#", line) for line in printed] == [
                _NUMBER.sub("#", line) for line in shown
            ], block
            _check_numbers(shown, printed)
        else:
            _check_numbers(re.findall(r"^# (.*)", block, re.MULTILINE), printed)


_USES_MODEL = re.compile(r"""load_pretrained\(|home\(\)""")


def _check_numbers(stated: list[str], printed: list[str]) -> None:
    """Assert that each printed line has the numbers of the stated one. A stated line may have more numbers."""
    assert len(stated) == len(printed), printed
    for expected, measured in zip(stated, printed, strict=True):
        numbers = [float(number) for number in _NUMBER.findall(measured)]
        assert [float(number) for number in _NUMBER.findall(expected)][: len(numbers)] == pytest.approx(
            numbers, abs=5e-3
        )


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_have_at_most_four_imports_of_the_package(page):
    for block, _ in EXAMPLES[page]:
        assert len(re.findall(r"^(?:from|import) trialogue", block, re.MULTILINE)) <= 4, block


def test_the_quickstart_notebook_prints_its_stored_output(capsys):
    """Run all cells in order. Numbers of a trained network may differ slightly between processors."""
    notebook = json.loads((ROOT / "docs" / "tutorials" / "quickstart.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 3
    for cell in cells:
        exec(compile("".join(cell["source"]), "quickstart.ipynb", "exec"), names)
        printed = capsys.readouterr().out
        shown = "".join("".join(output["text"]) for output in cell["outputs"])
        assert _NUMBER.sub("#", printed) == _NUMBER.sub("#", shown)
        assert [float(number) for number in _NUMBER.findall(printed)] == pytest.approx(
            [float(number) for number in _NUMBER.findall(shown)], rel=0.1, abs=0.02
        )


_FILE = re.compile(r"[\w./-]+\.(?:jsonl?|py|txt|tsv|safetensors)")


@pytest.mark.parametrize("page", sorted({str(path.relative_to(ROOT)) for path in PAGES[1:]}))
def test_shell_blocks_use_files_that_exist_or_are_made_on_the_page(page):
    """A file exists in the repository, is an output of a command, or is written by a Python block of the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = _BLOCK.findall(text)
    shell = "".join(code for language, code in blocks if language == "sh")
    python = "".join(code for language, code in blocks if language == "python")
    made = {*re.findall(r"(?:--out |> ?)([\w./-]+)", shell), *re.findall(r'"([\w./-]+)"', python)}
    missing = {name for name in _FILE.findall(shell) if name not in made and not (ROOT / name).is_file()}
    assert not missing


def test_every_python_block_is_executed_by_a_test():
    """Blocks marked `py` need a server. `tests/serving/test_serving_example.py` runs the only block of this kind."""
    fenced = {
        str(page.relative_to(ROOT)): languages
        for page in PAGES
        if (languages := re.findall(r"^```(py\S*)", page.read_text(encoding="utf-8"), re.MULTILINE))
    }
    assert {name for names in fenced.values() for name in names} == {"python", "py"}
    assert [page for page, names in fenced.items() for name in names if name == "py"] == [
        "docs/how-to/serve.md"
    ]


@pytest.mark.parametrize("help_words", COMMANDS_BY_HELP, ids=" ".join)
def test_every_option_in_the_documentation_is_in_the_help_of_its_command(help_words, capsys, monkeypatch):
    """The help text of the command, with the given sampler or study, lists every option that the pages use."""
    monkeypatch.setenv("COLUMNS", "80")  # A wider terminal prints groups of options side by side.
    try:
        code: object = main([*help_words, "--help-all" if help_words[0] == "generate" else "--help"])
    except SystemExit as stopped:
        code = stopped.code
    page = capsys.readouterr().out
    assert not code
    listed = re.findall(r"^[│ ]{0,3}(-\S.*?)(?:  |│|$)", page, re.MULTILINE)
    known = {option for names in listed for option in re.findall(r"--[\w-]+", names)} | {"--help"}
    for line, words in COMMANDS_BY_HELP[help_words].items():
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= known, COMMANDS[line]


def test_every_file_in_the_list_of_folders_exists():
    page = (
        (ROOT / "docs" / "how-to" / "extend.md")
        .read_text(encoding="utf-8")
        .partition("## Where things are")[2]
    )
    packages = (ROOT / "src" / "trialogue", ROOT / "lab" / "src" / "trialogue_lab")
    names = [name for cell in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE) for name in cell.split(", ")]
    assert len(names) > 14
    for name in names:
        assert any((package / name.strip("`")).exists() for package in packages), name


def test_every_link_of_the_readme_leads_to_a_file():
    readme = PAGES[0].read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", readme)
    assert len(links) > 5
    for link in links:
        assert (ROOT / link).exists(), link
