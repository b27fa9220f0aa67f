"""Modules of the package with some of their lines changed."""

import inspect
from types import ModuleType
from typing import Any


def altered(module: ModuleType, *changes: tuple[str, str], interpreted: bool = True) -> dict[str, Any]:
    """The names of `module`, with each of `changes` (old, new) made wherever `old` occurs in its source.

    Compiled functions are interpreted, or compiled again without being kept on disk.
    """
    source = inspect.getsource(module)
    for old, new in changes:
        assert old in source, f"{module.__name__} has no {old!r} any more"
        source = source.replace(old, new)
    decorator = (
        "def compiled(function): return function" if interpreted else "from numba import njit as compiled"
    )
    line = "from trialogue.compilation import compiled"
    assert line in source
    names: dict[str, Any] = {"__name__": f"altered.{module.__name__}"}
    exec(compile(source.replace(line, decorator), module.__name__, "exec"), names)
    return names
