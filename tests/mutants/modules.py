"""Modules of the package with some of their lines changed."""

import inspect
import re
from types import ModuleType
from typing import Any


def altered(
    module: ModuleType, *changes: tuple[str, str], interpreted: bool = True, compiled: bool = True
) -> dict[str, Any]:
    """The names of `module`, with each of `changes` (old, new) made wherever `old` occurs in its source.

    Functions of a `compiled` module are interpreted, or compiled again without being kept on disk.
    """
    source = inspect.getsource(module)
    for old, new in changes:
        assert old in source, f"{module.__name__} has no {old!r} any more"
        source = source.replace(old, new)
    if compiled:
        decorator = (
            "def compiled(function): return function" if interpreted else "from numba import njit as compiled"
        )
        lines = re.findall(r"^from trialogue\.compilation import .*\bcompiled\b.*$", source, re.MULTILINE)
        assert len(lines) == 1
        source = source.replace(lines[0], f"{lines[0]}\n{decorator}\ncompiled_sums = compiled")
    names: dict[str, Any] = {"__name__": f"altered.{module.__name__}"}
    exec(compile(source, module.__name__, "exec"), names)
    return names
