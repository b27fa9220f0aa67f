"""Inspections read from their files, and whether they can be set beside one another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.inspection.measures.quantities import Quantity
from trialogue.inspection.running import FORMAT, RECORD

_ALIKE = ("effort", "seed", "dtype", "text", "clones")
"""Settings by which the numbers of inspections are of one question"""
_TOLD = {"question", "reading", "logarithmic", "checkpoints"}


def read_inspections(places: Sequence[str | Path]) -> dict[str, dict[str, Any]]:
    """The inspections in the files, or folders, `places`, by their models: those of one name also by their places.

    Raises `InputError` for fewer than two, for one named twice, for what is no inspection, and where any two were taken
    with other settings: then their numbers are of other questions.
    """
    if len(places) < 2:
        raise InputError("inspections", [str(place) for place in places], "name two or more")
    paths = [Path(place) / RECORD if Path(place).is_dir() else Path(place) for place in places]
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise InputError("inspections", str(path), "it is named twice: name another one")
        seen.add(path.resolve())
    records = [_read(path) for path in paths]
    known: dict[str, tuple[Any, Path]] = {}
    for path, record in zip(paths, records, strict=True):
        for field in _ALIKE:
            value = record["settings"][field]
            # Without a text, what needs one was not taken, and the rest is alike.
            if value is None:
                continue
            before, of = known.setdefault(field, (value, path))
            if before != value:
                hint = f"{of} was taken with another {field}: inspect the models alike"
                raise InputError(field, str(path) if field in ("text", "clones") else value, hint)
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
    if not isinstance(record, dict) or record.get("format") != FORMAT or not _is_whole(record):
        raise InputError("inspection", str(path), f"it is no {FORMAT.rpartition(' ')[0]} of this version")
    return record


def _is_whole(record: dict[str, Any]) -> bool:
    """Whether `record` has all that is read of it here."""
    try:
        return (
            {"model", "kind"} <= set(record)
            and set(_ALIKE) <= set(record["settings"])
            and isinstance(record["refused"], dict)
            and all(map(_is_measure, record["measures"].values()))
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _is_measure(measure: Any) -> bool:
    """Whether it has its words, and of one checkpoint or more quantities that can be read."""
    if not isinstance(measure, dict) or not set(measure) >= _TOLD:
        return False
    try:
        read = [[Quantity.read(one) for one in taken["quantities"]] for taken in measure["checkpoints"]]
    except (InputError, KeyError, TypeError):
        return False
    return bool(read)
