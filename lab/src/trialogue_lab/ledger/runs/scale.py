"""How the config of a run differs from a study's presets, and whether the run is smaller than the preset `default`."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from trialogue_lab.ledger.runs.results import COUNTING, config_values
from trialogue_lab.ledger.study import Study

Differences = Mapping[str, tuple[Any, Any]]
"""Fields of a config by name: the run's value and the preset's value."""


def changed_fields(study: Study[Any], values: Mapping[str, Any]) -> tuple[str, Differences]:
    """Compare a run with the preset that is closest to it.

    Args:
        study: The study.
        values: The config of the run, as `config_values` returns it.

    Returns:
        The name of the counting preset from which the fewest fields differ (the smallest preset, if several), and
        the fields that differ. Fields of nested configs are named with dots.
    """
    run = _run(study, values)
    presets = [name for name in COUNTING if name in study.presets]
    differences = {name: _differences(run, _preset(study, name)) for name in presets}
    closest = min(presets, key=lambda name: len(differences[name]))
    return closest, differences[closest]


def reduced_fields(study: Study[Any], values: Mapping[str, Any]) -> Differences:
    """Return the fields that make a run smaller than the preset `default`.

    A field counts if it holds the replications of a claim, or if the preset `smoke` makes it smaller: a smaller whole
    number, a shorter list, or a list of the same length with a smaller whole number in some place. Such fields are
    numbers of seeds, samples and training steps.

    Args:
        study: The study.
        values: The config of the run, as `config_values` returns it.

    Returns:
        The fields in which the run is smaller than `default` in the same way, with both values. Empty for a run of
        full size.
    """
    run, default = _run(study, values), _preset(study, "default")
    smoke = _preset(study, "smoke") if "smoke" in study.presets else {}
    replications = {claim.statistic.replication.count for claim in study.claims}
    reduced = {}
    for name in default.keys() & run.keys():
        given, full, small = run[name], default[name], smoke.get(name)
        is_shorter = _is_less(given, full) and (_is_less(small, full) or name in replications)
        # The numbers of a list are sizes if those of `smoke` are smaller; seeds are labels.
        has_smaller = _has_less(given, full) and _has_less(small, full) and not name.endswith("seeds")
        if is_shorter or has_smaller:
            reduced[name] = (given, full)
    return {name: reduced[name] for name in default if name in reduced}


def _run(study: Study[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a run, with the defaults of fields that `config_values` leaves out."""
    return {**_omitted(study.presets["default"]), **dict(_flat(values))}


def _preset(study: Study[Any], name: str) -> dict[str, Any]:
    config = study.presets[name]
    return {**_omitted(config), **dict(_flat(config_values(config)))}


def _omitted(config: Any) -> dict[str, Any]:
    """Return the defaults of the fields that were added after results had been committed."""
    return {field.name: field.default for field in dataclasses.fields(config) if field.metadata.get("added")}


def _differences(run: Mapping[str, Any], preset: Mapping[str, Any]) -> Differences:
    names = [*preset, *(name for name in run if name not in preset)]
    return {name: (run.get(name), preset.get(name)) for name in names if run.get(name) != preset.get(name)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_less(value: Any, other: Any) -> bool:
    """Return whether a whole number is smaller than another, or a list shorter than another."""
    if isinstance(value, list) and isinstance(other, list):
        return len(value) < len(other)
    return _is_whole(value) and _is_whole(other) and value < other


def _has_less(value: Any, other: Any) -> bool:
    """Return whether a list has a smaller whole number than another list of its length in some place."""
    lists = isinstance(value, list) and isinstance(other, list) and len(value) == len(other)
    return lists and any(_is_less(mine, theirs) for mine, theirs in zip(value, other, strict=True))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
