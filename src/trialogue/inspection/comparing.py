"""Reading of several inspections, with a check that they can be compared."""

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

_COMPARED_SETTINGS = ("effort", "seed", "dtype", "text", "clones")
"""Settings that must agree for inspections to be comparable."""


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
    """Read the results of several inspections that were made with the same settings.

    Args:
        places: Files or folders written by `trialogue inspect`, at least two.

    Returns:
        Contents of the files `inspection.json`, by the name of the model, without folders if that is unique. If two
        models have the same name, the path is added to their names.

    Raises:
        InputError: If fewer than two places are given, a place is given twice, a file is not an inspection, or
            the settings differ.
    """
    if len(places) < 2:
        raise InputError("inspections", [str(place) for place in places], "give two or more")
    paths = [Path(place) / RECORD if Path(place).is_dir() else Path(place) for place in places]
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise InputError("inspections", str(path), "it is given twice. Give another one")
        seen.add(path.resolve())
    records = [_read(path) for path in paths]
    common: dict[str, tuple[Any, Path]] = {}
    for path, record in zip(paths, records, strict=True):
        for field in _COMPARED_SETTINGS:
            value = record["settings"][field]
            # An inspection without a text omits the measures that need one, and its other measures are comparable.
            if value is None:
                continue
            expected, first = common.setdefault(field, (value, path))
            if expected != value:
                hint = f"{first} has a different {field}. Inspect the models with the same settings"
                raise InputError(field, str(path) if field in ("text", "clones") else value, hint)
    names = [str(record["model"]) for record in records]
    last_parts = [name.rstrip("/").rpartition("/")[2] for name in names]
    if len(set(last_parts)) == len(names):
        names = last_parts
    return {
        name if names.count(name) == 1 else f"{name} ({path})": record
        for name, path, record in zip(names, paths, records, strict=True)
    }


def _read(path: Path) -> dict[str, Any]:
    """Read and validate the record of one inspection."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = "the file cannot be read. Give a file or folder written by `trialogue inspect`"
        raise InputError("inspection", str(path), hint) from error
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        hint = f"the file is not a {FORMAT.rpartition(' ')[0]} of this version. Inspect the model again"
        raise InputError("inspection", str(path), hint) from error
    return record
