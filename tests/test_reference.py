"""The pages of reference: every name that a namespace of the package exports is shown by one of them."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {"trialogue": ROOT / "src", "trialogue_lab": ROOT / "lab" / "src"}
SHOWN = {
    name
    for page in (ROOT / "docs" / "reference").iterdir()
    for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
}
STUBS = sorted(stub for source in SOURCES.values() for stub in source.rglob("__init__.pyi"))


def _parts(file: Path) -> tuple[str, ...]:
    """The parts of the name of the package that holds `file`."""
    (source,) = (source for source in SOURCES.values() if source in file.parents)
    return file.parent.relative_to(source).parts


def _exported(stub: Path) -> dict[str, str]:
    """The module that defines each name of a stub, read from its imports; modules among the names are left out."""
    return {
        name: _home(module, name)
        for name, module in _imports(stub).items()
        if module != ".".join(_parts(stub))
    }


def _home(module: str, name: str) -> str:
    """The module that defines `name`, followed from one that may only pass it on."""
    path = SOURCES[module.split(".")[0]].joinpath(*module.split("."))
    files = (path / "__init__.pyi", path / "__init__.py", path.with_suffix(".py"))
    passed_on = _imports(next(file for file in files if file.exists()))
    return _home(passed_on[name], name) if name in passed_on else module


def _imports(file: Path) -> dict[str, str]:
    """The module of the package that each name comes from which a file imports."""
    here = _parts(file)
    found = {}
    for line in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom):
            above = here[: len(here) + 1 - line.level] if line.level else ()
            module = ".".join((*above, *filter(None, [line.module])))
            found |= {one.name: module for one in line.names if module.startswith("trialogue")}
    return found


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: ".".join(_parts(stub)))
def test_every_exported_name_is_on_a_page(stub: Path) -> None:
    exported = _exported(stub)
    assert exported
    assert not {
        f"{module}.{name}"
        for name, module in exported.items()
        if module not in SHOWN and f"{module}.{name}" not in SHOWN
    }


def test_what_pages_show_is_shown_once() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").iterdir())
    assert len(re.findall(r"^::: ", pages, re.MULTILINE)) == len(SHOWN)
