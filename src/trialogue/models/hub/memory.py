"""How much memory is free for a model, asked for before it is taken: Linux ends who takes more without a word."""

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from trialogue.errors import InputError

_NAMES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_UNCHECKED = 1 << 30
"""Requests below this size are not checked. Reading the free memory takes about a millisecond."""
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def require_memory(field: str, value: object, needed: int) -> None:
    """Raise `InputError` where fewer than `needed` bytes are free; never where the system does not tell."""
    free = free_memory()
    if free is not None and needed > free:
        hint = (
            f"its weights need {_words(needed)} more of memory, and {_words(free)} are free: close other programs, "
            "ask for fewer bits, or take a smaller model"
        )
        raise InputError(field, value, hint)


def require_room(field: str, value: object, number: int, each: int, besides: int = 0) -> None:
    """Raise `InputError` if `number` items of `each` bytes plus `besides` bytes do not fit into memory.

    The error reports `value` for `field`, and the largest number of items that fits. Small requests are not checked.
    """
    needed = number * each + besides
    free = free_memory() if needed > _UNCHECKED else None
    if free is not None and needed > free:
        most = max(0, free - besides) // each
        hint = f"needs {_words(needed)} of memory, and {_words(free)} are free: use at most {most}"
        raise InputError(field, value, hint)


def bytes_read(folder: Path, dtype: torch.dtype) -> int:
    """Bytes that the weights in `folder` take once they are read as `dtype`; 0 where that is not known.

    Weights that are stored in that type take none: they are pages of a file, which leave memory where it is short.
    """
    files = [folder / "model.safetensors"]
    if not files[0].is_file():
        try:
            index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
            files = [folder / name for name in set(index["weight_map"].values())]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0
    numbers = 0
    with suppress(OSError, SafetensorError):
        for file in files:
            with safe_open(file, "pt") as stored:
                tensors = [stored.get_slice(name) for name in stored.keys()]  # noqa: SIM118 - it is no mapping
                others = [part for part in tensors if _NAMES.get(part.get_dtype()) != dtype]
                numbers += sum(math.prod(part.get_shape()) for part in others)
    return numbers * dtype.itemsize


def free_memory() -> int | None:
    """Bytes that this process can still take, by the machine with its swap and by control groups; None if untold."""
    told = list(_group_room())
    with suppress(OSError, ValueError, KeyError):
        machine = _numbers(_PROC / "meminfo")
        told.append((machine["MemAvailable:"] + machine["SwapFree:"]) * 1024)
    return max(0, min(told)) if told else None


def _group_room() -> Iterator[int]:
    """Yield what each control group (version 2) that holds this process leaves; its cached files count as free."""
    with suppress(OSError, ValueError, IndexError):
        place = Path((_PROC / "self/cgroup").read_text(encoding="utf-8").split("0::", 1)[1].strip())
        # In a container the path may be as seen from outside, while the root is the group itself.
        for folder in (_GROUPS / step.relative_to("/") for step in (place, *place.parents)):
            with suppress(OSError, ValueError, KeyError):
                stat = _numbers(folder / "memory.stat")
                cached = stat["inactive_file"] + stat["active_file"]
                used = int((folder / "memory.current").read_text())
                yield int((folder / "memory.max").read_text()) - used + cached


def _numbers(file: Path) -> dict[str, int]:
    """The first number of each line by the line's first word."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


def _words(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
