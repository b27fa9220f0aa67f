"""What trying a model has shown on this machine, kept so that it is tried once.

A finding counts for the same files of the model, settings, versions of libraries and of this package's own code, and
processor; where any of them is another, or what was kept cannot be read, the model is tried again. Findings lie beside
the models, in `$TRIALOGUE_HOME/findings` or the user's cache folder, and may be removed at any time.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers

import trialogue
from trialogue.errors import InputError
from trialogue.storage import atomic_write, user_folder

# They change which products a processor takes.
_SWITCHES = ("ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA")


class Findings:
    """What was found by trying the model that lies in `files` with `settings`; without files nothing is kept.

    `settings` and values are what JSON holds.
    """

    def __init__(self, files: Iterable[Path] = (), settings: Mapping[str, Any] | None = None) -> None:
        self._path: Path | None = None
        self._found: dict[str, Any] = {}
        try:
            stamps = sorted(_stamp(file) for file in files)
        except OSError:  # a file that goes while it is looked at
            return
        if not stamps:
            return
        self._conditions = json.loads(json.dumps({"files": stamps, "settings": settings, **_circumstances()}))
        name = hashlib.sha256(json.dumps(self._conditions, sort_keys=True).encode()).hexdigest()
        self._path = user_folder("findings") / f"{name[:32]}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if kept["conditions"] == self._conditions and isinstance(kept["found"], dict):
                self._found = kept["found"]

    def get(self, name: str) -> Any:
        """What was found out; None where nothing was, or not under these conditions."""
        return self._found.get(name)

    def keep(self, name: str, value: Any) -> None:
        """Keep a finding, where the folder can be written."""
        self._found[name] = value
        if self._path is not None:
            content = {"conditions": self._conditions, "found": self._found}
            with suppress(InputError):
                atomic_write(self._path, json.dumps(content, indent=1) + "\n")


def _stamp(file: Path) -> list[Any]:
    stat = file.stat()
    # Times of change and numbers of files differ for a copy that was given the time of its original.
    return [str(file.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _circumstances() -> dict[str, Any]:
    return {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "trialogue": trialogue.__version__,
        "code": _code(),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "switches": {name: os.environ.get(name) for name in _SWITCHES},
    }


@cache
def _code() -> str:
    """A digest of the code that loads and asks pretrained models."""
    digest, folder = hashlib.sha256(), Path(__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _processor() -> list[str]:
    """The model and the instructions of the processor, as far as the system tells."""
    told = [platform.machine(), platform.processor(), torch.backends.cpu.get_cpu_capability()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        for wanted in ("model name", "flags", "Features"):
            told += [line for line in lines if line.startswith(wanted)][:1]
    return told
