"""Larger presets of a study that have the repetitions which an undecided claim needs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from trialogue_lab.ledger.claims.answers import INSTEAD
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.runs.results import COUNTING, Result, config_values
from trialogue_lab.ledger.runs.scale import find_differences
from trialogue_lab.ledger.study import Study


def add_larger_presets(study: Study[Any], result: Result, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Add a remark on how to get the repetitions that would decide a claim to each undecided claim.

    The remark has the command that runs the smallest preset with so many repetitions. It has the computing time if the
    preset differs from the result in numbers of repetitions only, and the names of the other fields otherwise. If no
    preset has so many, the remark names the field with the number of repetitions. The preset `paper` is left out,
    because it changes the scale of the study.

    Args:
        study: The study.
        result: Result of a preset, from which the verdicts are.
        verdicts: Verdicts on the claims of the study.
    """
    if result.preset not in COUNTING:
        return list(verdicts)
    larger = COUNTING[COUNTING.index(result.preset) + 1 :]
    presets = [name for name in larger if name in study.presets and name != "paper"]
    hours = {name: estimate_hours(study, result, name) for name in presets}
    return [
        _add_remark(study, result, verdict, hours) if verdict.to_decide else verdict for verdict in verdicts
    ]


def _add_remark(
    study: Study[Any], result: Result, verdict: Verdict, hours: Mapping[str, float | None]
) -> Verdict:
    """Return a verdict with the remark of `add_larger_presets`. `hours` has the computing time of larger presets."""
    replication = verdict.claim.statistic.replication
    required = {name: replication.required(config_values(study.presets[name])) for name in hours}
    # The remark on the verdict shows this number, with two digits.
    needed = float(f"{verdict.to_decide:.2g}")
    chosen = next((name for name in hours if required[name] >= needed), None)
    time = hours[chosen] if chosen else None
    if chosen:
        cost = _describe_changes(study, result, chosen) if time is None else f"about {time:.2g} core hours"
        remark = f"trialogue run {study.name} --preset {chosen}: {required[chosen]} repetitions, {cost}"
    else:
        option = replication.count.replace("_", "-")
        remark = f"no preset has this many: use trialogue run {study.name} with more --{option}"
    place = 1 + next(index for index, one in enumerate(verdict.remarks) if INSTEAD in one)
    remarks = (*verdict.remarks[:place], remark, *verdict.remarks[place:])
    return replace(verdict, remarks=remarks, larger_preset=chosen, larger_hours=time)


def _find_changes(study: Study[Any], result: Result, preset: str) -> list[str]:
    """Return the fields of a preset that differ from a result, without numbers of repetitions."""
    counts = {claim.statistic.replication.count for claim in study.claims}
    return [name for name in find_differences(study, result.config, preset) if name not in counts]


def _describe_changes(study: Study[Any], result: Result, preset: str) -> str:
    """Return which other settings a preset changes, as text."""
    changes = _find_changes(study, result, preset)
    if not changes:
        return "of unknown computing time"
    others = len(changes) - 3
    more = f" and {others} other field{'s' * (others > 1)}" if others > 0 else ""
    return f"and other values of {', '.join(changes[:3])}{more}"


def estimate_hours(study: Study[Any], result: Result, preset: str) -> float | None:
    """Return the computing time of a preset in hours, if it repeats the tasks of a result, and None otherwise.

    A task is assumed to take as long as the mean of the tasks whose names differ in numbers only.

    Args:
        study: The study.
        result: Finished result of another preset.
        preset: Name of the preset.
    """
    if _find_changes(study, result, preset):
        return None
    seconds = defaultdict[str, list[float]](list)
    for name, part in result.provenance["parts"].items():
        seconds[re.sub(r"\d+", "", name)].append(part["seconds"])
    kinds = [re.sub(r"\d+", "", part.name) for part in study.parts(study.presets[preset])]
    if not seconds.keys() >= set(kinds):
        return None
    return sum(sum(seconds[kind]) / len(seconds[kind]) for kind in kinds) / 3600
