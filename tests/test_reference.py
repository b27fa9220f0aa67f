"""Every name that a namespace of the package exports appears on a page of the reference."""

import ast
import importlib.util
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


def _package_parts(file: Path) -> tuple[str, ...]:
    """Return the components of the name of the package that contains `file`."""
    (source,) = (source for source in SOURCES.values() if source in file.parents)
    return file.parent.relative_to(source).parts


def _defining_modules(stub: Path) -> dict[str, str]:
    """Return the defining module of each name in a stub, without names that are modules."""
    return {
        name: _defining_module(module, name)
        for name, module in _imports(stub).items()
        if module != ".".join(_package_parts(stub))
    }


def _defining_module(module: str, name: str) -> str:
    """Return the module that defines `name`, if `module` may only re-export it."""
    path = SOURCES[module.split(".")[0]].joinpath(*module.split("."))
    files = (path / "__init__.pyi", path / "__init__.py", path.with_suffix(".py"))
    reexported = _imports(next(file for file in files if file.exists()))
    return _defining_module(reexported[name], name) if name in reexported else module


def _imports(file: Path) -> dict[str, str]:
    """Return the module from which a file imports each name."""
    here = _package_parts(file)
    found = {}
    for line in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.ImportFrom):
            above = here[: len(here) + 1 - line.level] if line.level else ()
            module = ".".join((*above, *filter(None, [line.module])))
            found |= {alias.name: module for alias in line.names if module.startswith("trialogue")}
    return found


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: ".".join(_package_parts(stub)))
def test_every_exported_name_is_documented(stub):
    exported = _defining_modules(stub)
    assert exported
    assert not {
        f"{module}.{name}"
        for name, module in exported.items()
        if module not in SHOWN and f"{module}.{name}" not in SHOWN
    }


def test_every_page_lists_its_modules_in_a_table():
    spec = importlib.util.spec_from_file_location("reference_tables", ROOT / "docs" / "reference.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    stale = [
        line.split(" | ")[:2]
        for page in tables.PAGES
        for line in tables.with_table(page.read_text(encoding="utf-8")).splitlines()
        if line.startswith("| ") and " | ".join(line.split(" | ")[:2]) not in page.read_text(encoding="utf-8")
    ]
    assert not stale, "run `python docs/reference.py`"


def test_no_name_is_documented_twice():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").iterdir())
    assert len(re.findall(r"^::: ", pages, re.MULTILINE)) == len(SHOWN)
