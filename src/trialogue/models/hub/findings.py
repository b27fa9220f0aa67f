"""Storage of self-check results, so that each model is checked once per machine.

A result is valid for the same model files, settings, library versions, package code and processor. If any of them
differs, or if the file cannot be read, the check is repeated. Results are stored in `$TRIALOGUE_HOME/findings`, or in
the user's cache folder, and can be deleted at any time.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import trialogue
from trialogue.errors import InputError
from trialogue.storage import atomic_write, user_folder

# These variables select the kernels of matrix products.
_SWITCHES = ("ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA")


class SelfCheckStore:
    """Results of the self-checks of a model, stored on disk.

    Args:
        files: Files of the model. Without files, results are not stored on disk.
        settings: Settings that affect the results, as JSON values.
    """

    def __init__(self, files: Iterable[Path] = (), settings: Mapping[str, Any] | None = None) -> None:
        self._path: Path | None = None
        self._found: dict[str, Any] = {}
        try:
            stamps = sorted(_describe_file(file) for file in files)
        except OSError:  # A file was deleted in the meantime.
            return
        if not stamps:
            return
        self._conditions = json.loads(json.dumps({"files": stamps, "settings": settings, **_environment()}))
        name = hashlib.sha256(json.dumps(self._conditions, sort_keys=True).encode()).hexdigest()
        self._path = user_folder("findings") / f"{name[:32]}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if stored["conditions"] == self._conditions and isinstance(stored["found"], dict):
                self._found = stored["found"]

    def get(self, name: str) -> Any:
        """Return the result with the name `name`, or None if it is not stored for these files and settings."""
        return self._found.get(name)

    def keep(self, name: str, value: Any) -> None:
        """Store a result, which must be a JSON value. It is kept in memory only if the folder cannot be written."""
        self._found[name] = value
        if self._path is not None:
            content = {"conditions": self._conditions, "found": self._found}
            with suppress(InputError):
                atomic_write(self._path, json.dumps(content, indent=1) + "\n")


def _describe_file(file: Path) -> list[Any]:
    stat = file.stat()
    # The inode and its change time also detect a copy with the modification time of the original.
    return [str(file.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _environment() -> dict[str, Any]:
    return {
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "trialogue": trialogue.__version__,
        "code": _code(),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "switches": {name: os.environ.get(name) for name in _SWITCHES},
    }


@cache
def _code() -> str:
    """Return a hash of the source code that loads pretrained models."""
    digest, folder = hashlib.sha256(), Path(__file__).parent
    for file in sorted((*folder.rglob("*.py"), *(folder.parent / "decoders").rglob("*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _processor() -> list[str]:
    """Return the model and the instruction sets of the processor, as far as the system reports them."""
    description = [platform.machine(), platform.processor(), torch.backends.cpu.get_cpu_capability()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        for field in ("model name", "flags", "Features"):
            description += [line for line in lines if line.startswith(field)][:1]
    return description
