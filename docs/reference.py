"""Fill the tables of the reference pages, which list the documented modules and their public names.

Usage: python docs/reference.py
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))

_SOURCES = {"trialogue": ROOT / "src", "trialogue_lab": ROOT / "lab" / "src"}
_ENTRY = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_TABLE = re.compile(r"^\| module \|.*?\n\n", re.MULTILINE | re.DOTALL)


def with_table(page: str) -> str:
    """Return a reference page with its table of modules before the first entry.

    Args:
        page: Text of the page. Every entry is a line `::: NAME`, where NAME is a module or an object in a module.
    """
    lines = ["| module | names | purpose |", "|---|---|---|", *map(_row, _ENTRY.findall(page))]
    start, entries = _TABLE.sub("", page).split(":::", 1)
    return f"{start.rstrip()}\n\n{chr(10).join(lines)}\n\n:::{entries}"


def _row(name: str) -> str:
    """Return the row of an entry: its module, its public names, and the first line of its docstring."""
    module, tree = _parse(name)
    defined = [
        node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"
    ]
    if module != name:
        defined = [node for node in defined if node.name == name.rpartition(".")[2]]
    names = ", ".join(f"`{node.name}`" for node in defined) or f"`{name.rpartition('.')[2]}`"
    documented = tree if module == name or not defined else defined[0]
    purpose = (ast.get_docstring(documented) or "").partition("\n")[0].replace("|", "\\|")
    return f"| `{module}` | {names} | {purpose} |"


def _parse(name: str) -> tuple[str, ast.Module]:
    """Return the module with this name or with the object of this name, and its source."""
    path = _SOURCES[name.partition(".")[0]].joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return name, ast.parse(file.read_text(encoding="utf-8"))
    return _parse(name.rpartition(".")[0])


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
