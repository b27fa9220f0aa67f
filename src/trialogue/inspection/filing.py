"""The files of an inspection: one for each measure of each checkpoint and of the control, and what they come to."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.inspection.interaction_order.measure import Found
from trialogue.inspection.measures.measure import MEASURES
from trialogue.storage import atomic_write, stored_object

CONTROL_FOLDER = "control"
"""That of random weights, beside those of checkpoints"""

_ADDED = ("text", "clones")
"""What may be given to an inspection that was begun without."""
_FREE = "control"
"""What may differ from one command to the next: nothing else depends on whether there is one."""


def gathered(work: Path, found: Sequence[Found], control: bool) -> dict[str, Any]:
    """What is filed in `work` of the checkpoints `found`, measure by measure, as `inspection.json` has it.

    Of random weights only where there is a `control`: the folder may have one from before, of another architecture.
    """
    measures: dict[str, Any] = {}
    refused: dict[str, str] = {}
    kind = None
    for name in MEASURES:
        series, whole = [], None
        lacking: dict[str, str] = {}
        for place in found:
            record = filed_measure(work / folder_of(place) / f"{name}.json")
            if record is None:
                continue
            kind = record["kind"]
            if "refused" in record:
                lacking[folder_of(place)] = record["refused"]
                continue
            whole = record
            kept = {key: record[key] for key in ("version", "files", "quantities", "tokens", "seconds")}
            series.append({"place": place.place, "step": place.step, **kept})
        if whole is None and lacking:
            refused[name] = lacking.popitem()[1]
        if whole is not None:
            refused |= {f"{name} of {place}": reason for place, reason in lacking.items()}
            beside = (filed_measure(work / CONTROL_FOLDER / f"{name}.json") if control else None) or {}
            told = {key: whole[key] for key in ("question", "reading", "logarithmic")}
            measures[name] = {**told, "checkpoints": series, "control": beside.get("quantities")}
    return {"kind": kind, "measures": measures, "refused": refused}


_DESCRIBED = {"version", "question", "reading", "logarithmic", "kind", "files"}
_MEASURED = {"quantities", "tokens", "seconds"}
_DAMAGED = "it is damaged: delete it, and it is made anew"


def filed_measure(path: Path) -> dict[str, Any] | None:
    """What is filed of a measure; None where nothing is. Raises `InputError` where that is damaged."""
    record = stored_object(path, "out", _DAMAGED)
    if record is not None and not (
        set(record) >= _DESCRIBED and ("refused" in record or set(record) >= _MEASURED)
    ):
        raise InputError("out", str(path), _DAMAGED)
    return record


def require_same(path: Path, settings: dict[str, Any], begun: bool) -> None:
    """Keep what was inspected alike together; raises `InputError` where the folder has something else.

    Where no measure is filed yet, nothing is `begun`, and settings are those that are given last.
    """
    there = stored_object(path, "out", _DAMAGED) if begun else None
    wanted = json.loads(json.dumps(settings))
    if there is None:
        atomic_write(path, json.dumps(wanted, indent=1) + "\n")
        return
    for field, value in wanted.items():
        before = there.get(field)
        if before != value and field != _FREE and not (field in _ADDED and before is None):
            shown = "another one" if field in _ADDED else before
            hint = f"{path.parent.parent} has an inspection with {shown}: give the same, or another folder (--out)"
            raise InputError(field, "left out" if value is None else value, hint)
    if there != wanted:
        atomic_write(path, json.dumps(wanted, indent=1) + "\n")


def folder_of(found: Found) -> str:
    """The name of the folder of a checkpoint: its step, where that is known, and never `CONTROL_FOLDER`."""
    if found.step is not None:
        return f"step-{found.step}"
    return "model-" + re.sub(r"[^A-Za-z0-9._-]+", "-", Path(found.place).name).strip("-.")
