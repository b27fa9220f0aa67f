"""Checks of free memory before large allocations, because Linux kills processes that exceed it without a message."""

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from trialogue.errors import InputError

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_UNCHECKED = 1 << 30
"""Requests below this size are not checked. Reading the free memory takes about a millisecond."""
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def require_memory(field: str, value: object, needed: int) -> None:
    """Raise `InputError` if the weights of a model do not fit into memory.

    Nothing is checked if the amount of free memory is unknown.

    Args:
        field: Name of the setting in the error.
        value: Value of the setting in the error.
        needed: Size in bytes.
    """
    free = free_memory()
    if free is not None and needed > free:
        hint = (
            f"its weights need {_format_size(needed)} more memory, and {_format_size(free)} are free. "
            "Close other programs, use fewer bits per weight, or use a smaller model"
        )
        raise InputError(field, value, hint)


def require_memory_for_items(field: str, value: object, number: int, each: int, besides: int = 0) -> None:
    """Raise `InputError` if a number of equally large items does not fit into memory.

    The required size is `number` times `each` plus `besides` bytes. Small requests are not checked. The error contains
    the largest number of items that fits.

    Args:
        field: Name of the setting in the error.
        value: Value of the setting in the error.
        number: Number of items.
        each: Size of an item in bytes.
        besides: Additional size in bytes.
    """
    needed = number * each + besides
    free = free_memory() if needed > _UNCHECKED else None
    if free is not None and needed > free:
        most = max(0, free - besides) // each
        hint = (
            f"needs {_format_size(needed)} of memory, and {_format_size(free)} are free. Use at most {most}"
        )
        raise InputError(field, value, hint)


def conversion_size(folder: Path, dtype: torch.dtype) -> int:
    """Return the memory in bytes that is needed to convert the weights in `folder` to `dtype`.

    Weights that are stored in this dtype are memory-mapped, and are not counted.

    Returns:
        The number of bytes, or 0 if it is unknown.
    """
    files = [folder / "model.safetensors"]
    if not files[0].is_file():
        try:
            index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
            files = [folder / name for name in set(index["weight_map"].values())]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0
    elements = 0
    with suppress(OSError, SafetensorError):
        for file in files:
            with safe_open(file, "pt") as weights:
                tensors = [weights.get_slice(name) for name in weights.keys()]  # noqa: SIM118 - not a mapping
                converted = [part for part in tensors if _DTYPES.get(part.get_dtype()) != dtype]
                elements += sum(math.prod(part.get_shape()) for part in converted)
    return elements * dtype.itemsize


def free_memory() -> int | None:
    """Return the memory in bytes that this process can still allocate, or None if it is unknown.

    Swap and the limits of control groups are taken into account.
    """
    limits = list(_free_control_group_memory())
    with suppress(OSError, ValueError, KeyError):
        machine = _first_numbers(_PROC / "meminfo")
        limits.append((machine["MemAvailable:"] + machine["SwapFree:"]) * 1024)
    return max(0, min(limits)) if limits else None


def _free_control_group_memory() -> Iterator[int]:
    """Yield the free memory in bytes of each control group (version 2) of this process. Cached files count as free."""
    with suppress(OSError, ValueError, IndexError):
        group = Path((_PROC / "self/cgroup").read_text(encoding="utf-8").split("0::", 1)[1].strip())
        # In a container, the path may refer to the host, so all parent folders up to the root are tried.
        for folder in (_GROUPS / step.relative_to("/") for step in (group, *group.parents)):
            with suppress(OSError, ValueError, KeyError):
                stat = _first_numbers(folder / "memory.stat")
                cached = stat["inactive_file"] + stat["active_file"]
                used = int((folder / "memory.current").read_text())
                yield int((folder / "memory.max").read_text()) - used + cached


def _first_numbers(file: Path) -> dict[str, int]:
    """Return the first number of each line, by the first word of the line."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


def _format_size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
