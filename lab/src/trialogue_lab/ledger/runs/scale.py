"""Comparison of a run's config with the presets (named configs) of its study."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from trialogue_lab.ledger.runs.results import COUNTING, config_values
from trialogue_lab.ledger.study import Study

Differences = Mapping[str, tuple[Any, Any]]
"""By name of config field: value of the run, value of the preset."""


def changed_fields(study: Study[Any], values: Mapping[str, Any]) -> tuple[str, Differences]:
    """Return the preset closest to a run, and the config fields that differ from it.

    The closest preset has the fewest differing fields. Ties go to presets whose results count, then to the
    smallest.

    Args:
        study: The study, an experiment that tests claims of a publication.
        values: Config of the run, as returned by `config_values`.

    Returns:
        Name of the preset, and the differing fields. Fields of nested configs are joined by dots.
    """
    run = _flatten_run(study, values)
    presets = [name for name in dict.fromkeys([*COUNTING, *study.presets]) if name in study.presets]
    differences = {name: _find_differences(run, _flatten_preset(study, name)) for name in presets}
    closest = min(presets, key=lambda name: len(differences[name]))
    return closest, differences[closest]


def reduced_fields(study: Study[Any], values: Mapping[str, Any]) -> Differences:
    """Return the config fields that make a run smaller than the preset `default`.

    Examples are fewer seeds or fewer training steps. Other fields, which do not change the size of a run, are
    ignored.

    Args:
        study: The study, an experiment that tests claims of a publication.
        values: Config of the run, as returned by `config_values`.

    Returns:
        By field, the value of the run and of `default`. Empty for a run of full size.
    """
    run, default = _flatten_run(study, values), _flatten_preset(study, "default")
    smoke = _flatten_preset(study, "smoke") if "smoke" in study.presets else {}
    replications = {claim.statistic.replication.count for claim in study.claims}
    reduced = {}
    for name in default.keys() & run.keys():
        given, full, small = run[name], default[name], smoke.get(name)
        is_shorter = _is_less(given, full) and (_is_less(small, full) or name in replications)
        # The integers of a list are sizes if `smoke` has smaller ones. Seeds are labels, not sizes.
        has_smaller = _has_less(given, full) and _has_less(small, full) and not name.endswith("seeds")
        if is_shorter or has_smaller:
            reduced[name] = (given, full)
    return {name: reduced[name] for name in default if name in reduced}


def find_differences(study: Study[Any], values: Mapping[str, Any], preset: str) -> Differences:
    """Return the config fields of a run that differ from a preset of its study.

    Args:
        study: The study, an experiment that tests claims of a publication.
        values: Config of the run, as returned by `config_values`.
        preset: Name of the preset.
    """
    return _find_differences(_flatten_run(study, values), _flatten_preset(study, preset))


def _flatten_run(study: Study[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a run as a flat dict, with the default values of fields that `config_values` omits."""
    fields = dataclasses.fields(study.presets["default"])
    omitted = {field.name: field.default for field in fields if field.metadata.get("added")}
    return {**omitted, **dict(_flatten(values))}


def _flatten_preset(study: Study[Any], name: str) -> dict[str, Any]:
    return _flatten_run(study, config_values(study.presets[name]))


def _find_differences(run: Mapping[str, Any], preset: Mapping[str, Any]) -> Differences:
    names = [*preset, *(name for name in run if name not in preset)]
    return {name: (run.get(name), preset.get(name)) for name in names if run.get(name) != preset.get(name)}


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_less(value: Any, other: Any) -> bool:
    """Return whether `value` is smaller than `other`: a smaller integer or a shorter list."""
    if isinstance(value, list) and isinstance(other, list):
        return len(value) < len(other)
    return _is_integer(value) and _is_integer(other) and value < other


def _has_less(value: Any, other: Any) -> bool:
    """Return whether some integer in the list `value` is smaller than the one in `other` at the same position."""
    lists = isinstance(value, list) and isinstance(other, list) and len(value) == len(other)
    return lists and any(_is_less(mine, theirs) for mine, theirs in zip(value, other, strict=True))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
