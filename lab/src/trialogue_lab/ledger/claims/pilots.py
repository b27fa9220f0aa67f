"""Pilots: what a study's statistics were on seeds of their own, frozen in a file beside the study.

A pilot shows what power a run has. It never counts as evidence, and moves no published claim.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.storage import atomic_write


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """Estimates by name of statistic; `rows_sha256` and `commit` say where they come from, where that is known."""

    seeds: tuple[int, ...] = ()
    estimates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    rows_sha256: str | None = None
    commit: str | None = None

    def write(self, path: Path) -> Path:
        """Freeze the pilot in the file `path`."""
        values: dict[str, Any] = {
            "seeds": list(self.seeds),
            "commit": self.commit,
            "rows_sha256": self.rows_sha256,
            "estimates": {name: list(numbers) for name, numbers in self.estimates.items()},
        }
        return atomic_write(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def read_pilot(path: Path) -> Pilot:
    """The pilot frozen in `path`, an empty one where there is no such file; raises `InputError` for a damaged one."""
    if not path.is_file():
        return Pilot()
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Pilot(
            seeds=tuple(map(int, values["seeds"])),
            estimates={name: tuple(map(float, numbers)) for name, numbers in values["estimates"].items()},
            rows_sha256=values["rows_sha256"],
            commit=values["commit"],
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            "pilot", str(path), f"cannot be read ({error}): run `trialogue pilot` again"
        ) from error
