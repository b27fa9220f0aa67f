"""Modules of the package with some of their lines changed."""

import inspect
import re
from types import ModuleType
from typing import Any


def altered(
    module: ModuleType, *changes: tuple[str, str], interpreted: bool = True, compiled: bool = True
) -> dict[str, Any]:
    """The names of `module`, with each of `changes` (old, new) made wherever `old` occurs in its source.

    Line breaks of the source do not matter. Functions of a `compiled` module are interpreted, or compiled again without
    being kept on disk.
    """
    source = inspect.getsource(module)
    for old, new in changes:
        pattern = re.escape(old) if old in source else _anyhow_broken(old)
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


def _anyhow_broken(code: str) -> str:
    """A pattern of `code` that a formatter may have broken into lines: at spaces, and within brackets."""
    pattern = r"\s+".join(re.escape(word) for word in code.split(" "))
    pattern = re.sub(r"(\\[(\[])", r"\1\\s*", pattern)
    return re.sub(r"(\\[)\]])", r",?\\s*\1", pattern)
