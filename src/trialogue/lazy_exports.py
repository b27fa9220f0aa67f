"""Exports of a package that are imported only when they are used.

A package lists its exports in `__init__.pyi`, where type checkers and editors read them. Its `__init__.py` contains

    __getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from the imports of its stub.

    Args:
        package: The package's `__name__`.
        file: The package's `__file__`. The stub lies next to it.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules = {
        name.asname or name.name: ".".join(filter(None, (package if line.level else "", line.module)))
        for line in stub.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: sorted(modules), sorted(modules)
