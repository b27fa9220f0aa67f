"""Inspections read from their files, and whether they can be set beside one another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import BaseModel, ValidationError

from trialogue.errors import InputError
from trialogue.inspection.measures.quantities import Quantity
from trialogue.inspection.running import FORMAT, RECORD

_ALIKE = ("effort", "seed", "dtype", "text", "clones")
"""Settings by which the numbers of inspections are of one question"""


class _Checkpoint(BaseModel):
    quantities: list[Quantity]


class _Measure(BaseModel):
    question: str
    reading: str
    logarithmic: bool
    checkpoints: Annotated[list[_Checkpoint], MinLen(1)]


class _Settings(BaseModel):
    effort: float
    seed: int
    dtype: str
    text: Any
    clones: Any


class _Record(BaseModel):
    format: Literal["trialogue inspection 1"]
    model: str
    kind: str | None
    settings: _Settings
    refused: dict[str, str]
    measures: dict[str, _Measure]


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
        hint = "it cannot be read: name a file or folder of `trialogue inspect`"
        raise InputError("inspection", str(path), hint) from error
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        hint = f"it is no {FORMAT.rpartition(' ')[0]} of this version"
        raise InputError("inspection", str(path), hint) from error
    found: dict[str, Any] = record
    return found
