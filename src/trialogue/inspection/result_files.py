"""Files with the results of an inspection.

There is one file per measure and checkpoint, and a combined record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.inspection.interaction_order.measure import CheckpointLocation
from trialogue.inspection.measures.measure import MEASURES
from trialogue.storage import atomic_write, read_json_object

CONTROL_FOLDER = "control"
"""Folder with the results of the model with random weights."""

_OPTIONAL_MATERIAL = ("text", "clones")
"""Settings that may be added when an inspection is resumed."""
_CHANGEABLE = "control"
"""Setting that may change when an inspection is resumed, because no other result depends on it."""


def collect_results(work: Path, checkpoints: Sequence[CheckpointLocation], control: bool) -> dict[str, Any]:
    """Combine the stored results of all measures and checkpoints.

    Args:
        work: Folder with the result files.
        checkpoints: Checkpoints of the model.
        control: Whether to include the results for random weights. If False, stored results of an earlier
            control are left out, because they may belong to another architecture.

    Returns:
        Part of the content of `inspection.json`. The key `kind` has the kind of the model, `measures` has the
        results by measure, and `refused` has the reasons why measures do not apply.
    """
    measures: dict[str, Any] = {}
    refused: dict[str, str] = {}
    kind = None
    for name in MEASURES:
        results, latest = [], None
        reasons: dict[str, str] = {}
        for checkpoint in checkpoints:
            record = read_result(work / checkpoint_folder(checkpoint) / f"{name}.json")
            if record is None:
                continue
            kind = record["kind"]
            if "refused" in record:
                reasons[checkpoint_folder(checkpoint)] = record["refused"]
                continue
            latest = record
            columns = {key: record[key] for key in ("version", "files", "quantities", "tokens", "seconds")}
            results.append({"place": checkpoint.place, "step": checkpoint.step, **columns})
        if latest is None and reasons:
            refused[name] = reasons.popitem()[1]
        if latest is not None:
            refused |= {f"{name} of {folder}": reason for folder, reason in reasons.items()}
            controlled = (read_result(work / CONTROL_FOLDER / f"{name}.json") if control else None) or {}
            description = {key: latest[key] for key in ("question", "reading", "logarithmic")}
            measures[name] = {
                **description,
                "checkpoints": results,
                "control": controlled.get("quantities"),
            }
    return {"kind": kind, "measures": measures, "refused": refused}


_DESCRIPTION_KEYS = {"version", "question", "reading", "logarithmic", "kind", "files"}
_RESULT_KEYS = {"quantities", "tokens", "seconds"}
_DAMAGED = "the file is damaged. Delete it and run the command again"


def read_result(path: Path) -> dict[str, Any] | None:
    """Read the stored result of one measure.

    Args:
        path: JSON file.

    Returns:
        The result, or None if the file does not exist.

    Raises:
        InputError: If the file is damaged.
    """
    record = read_json_object(path, "out", _DAMAGED)
    if record is not None and not (
        set(record) >= _DESCRIPTION_KEYS and ("refused" in record or set(record) >= _RESULT_KEYS)
    ):
        raise InputError("out", str(path), _DAMAGED)
    return record


def require_same_settings(path: Path, settings: dict[str, Any], has_results: bool) -> None:
    """Raise `InputError` if an inspection would continue with other settings than before.

    The settings are written to `path` if there is no file or no result yet.

    Args:
        path: File with the settings.
        settings: Settings of the present inspection.
        has_results: Whether the folder contains results.

    Raises:
        InputError: If the folder contains results with other settings.
    """
    stored = read_json_object(path, "out", _DAMAGED) if has_results else None
    given = json.loads(json.dumps(settings))
    if stored is None:
        atomic_write(path, json.dumps(given, indent=1) + "\n")
        return
    for field, value in given.items():
        before = stored.get(field)
        if before != value and field != _CHANGEABLE and not (field in _OPTIONAL_MATERIAL and before is None):
            shown = "another one" if field in _OPTIONAL_MATERIAL else before
            hint = f"the inspection in {path.parent.parent} used {shown}. Use the same, or another folder (--out)"
            raise InputError(field, "not given" if value is None else value, hint)
    if stored != given:
        atomic_write(path, json.dumps(given, indent=1) + "\n")


def checkpoint_folder(checkpoint: CheckpointLocation) -> str:
    """Return the name of the folder for the results of a checkpoint.

    The name contains the training step if it is known. It never equals `CONTROL_FOLDER`, the folder for random
    weights.

    Args:
        checkpoint: Location and training step.
    """
    if checkpoint.step is not None:
        return f"step-{checkpoint.step}"
    return "model-" + re.sub(r"[^A-Za-z0-9._-]+", "-", Path(checkpoint.place).name).strip("-.")
