"""Inspections read from their files, and whether they can be set beside one another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trialogue.analysis.inspection.running import FORMAT, RECORD
from trialogue.errors import InputError


def read_inspections(places: Sequence[str | Path]) -> dict[str, dict[str, Any]]:
    """The inspections in the files, or folders, `places`, by their models: those of one name also by their places.

    Raises `InputError` for fewer than two, for what is no inspection, and for those that were taken with other
    settings: then their numbers are of other questions.
    """
    if len(places) < 2:
        raise InputError("inspections", [str(place) for place in places], "name two or more")
    paths = [Path(place) / RECORD if Path(place).is_dir() else Path(place) for place in places]
    records = [_read(path) for path in paths]
    first = records[0]["settings"]
    for path, record in zip(paths[1:], records[1:], strict=True):
        for field in ("effort", "seed", "text", "clones"):
            # Without a text, what needs one was not taken, and the rest is alike.
            if (
                None not in (record["settings"][field], first[field])
                and record["settings"][field] != first[field]
            ):
                mend = f"{paths[0]} was taken with another {field}: inspect the models alike"
                shown = record["settings"][field] if field in ("effort", "seed") else str(path)
                raise InputError(field, shown, mend)
    names = [str(record["model"]) for record in records]
    return {
        name if names.count(name) == 1 else f"{name} ({path})": record
        for name, path, record in zip(names, paths, records, strict=True)
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            "inspection", str(path), "it cannot be read: name a file or folder of `trialogue inspect`"
        ) from error
    parts = {"model", "kind", "settings", "measures", "refused"}
    if not isinstance(record, dict) or record.get("format") != FORMAT or not parts <= set(record):
        raise InputError("inspection", str(path), f"it is no {FORMAT.rpartition(' ')[0]} of this version")
    return record
