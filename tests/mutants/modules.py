"""Modules of the package with changed source lines."""

import inspect
import re
from types import ModuleType
from typing import Any


def altered(
    module: ModuleType, *changes: tuple[str, str], interpreted: bool = True, compiled: bool = True
) -> dict[str, Any]:
    """Execute the source of `module` with text replacements, and return its names.

    Args:
        module: Module to change.
        changes: Pairs (old, new). Each `old` must occur, and line breaks of the source are ignored.
        interpreted: Run compiled functions in Python instead of compiling them again without a cache.
        compiled: Whether the module has compiled functions.
    """
    source = inspect.getsource(module)
    for old, new in changes:
        pattern = re.escape(old) if old in source else _pattern_across_lines(old)
        source, count = re.subn(pattern, lambda _, new=new: new, source)
        assert count, f"{module.__name__} has no {old!r} any more"
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


def _pattern_across_lines(code: str) -> str:
    """Return a pattern of `code` that also matches if a formatter has broken it into lines."""
    pattern = r"\s+".join(re.escape(word) for word in code.split(" "))
    pattern = re.sub(r"(\\[(\[])", r"\1\\s*", pattern)
    return re.sub(r"(\\[)\]])", r",?\\s*\1", pattern)
