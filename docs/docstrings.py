"""Print the docstrings of Python files as Markdown, for a prose linter: `python docs/docstrings.py FOLDER...`."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, DOCUMENTED):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def main() -> None:
    """Print the docstrings of the files in the folders that the command line names."""
    for folder in sys.argv[1:]:
        for path in sorted(Path(folder).rglob("*.py")):
            for line, text in docstrings(path):
                print(f"# {path}:{line}\n\n{text}\n")


if __name__ == "__main__":
    main()
