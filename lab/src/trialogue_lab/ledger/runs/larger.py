"""Larger presets of a study that have the repetitions which an undecided claim needs."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.runs.results import COUNTING, Result, config_values
from trialogue_lab.ledger.runs.scale import find_differences
from trialogue_lab.ledger.study import Study


def add_larger_presets(study: Study[Any], result: Result, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Add a remark to each undecided claim for which a preset has the repetitions that would decide it.

    The remark has the command that runs the preset. It has the computing time if the preset differs from the result in
    numbers of repetitions only. The preset `paper` is left out, because it changes the scale of the study.

    Args:
        study: The study.
        result: Result of a preset, from which the verdicts are.
        verdicts: Verdicts on the claims of the study.
    """
    hours: dict[str, float | None] = {}
    found = []
    for verdict in verdicts:
        for name in _larger_presets(study, result) if verdict.to_decide else ():
            required = verdict.claim.statistic.replication.required(config_values(study.presets[name]))
            # The remark on the verdict shows this number, with two digits.
            if required < float(f"{verdict.to_decide:.2g}"):
                continue
            if name not in hours:
                hours[name] = _estimate_hours(study, result, name)
            time = hours[name]
            cost = "with other settings, too" if time is None else f"about {time:.2g} core hours"
            remark = f"trialogue run {study.name} --preset {name}: {required} repetitions, {cost}"
            place = 1 + next(index for index, one in enumerate(verdict.remarks) if "would decide it" in one)
            remarks = (*verdict.remarks[:place], remark, *verdict.remarks[place:])
            verdict = replace(verdict, remarks=remarks)
            break
        found.append(verdict)
    return found


def _larger_presets(study: Study[Any], result: Result) -> list[str]:
    """Return the presets that are larger than the preset of a result, except `paper`. Empty for other results."""
    if result.preset not in COUNTING:
        return []
    larger = COUNTING[COUNTING.index(result.preset) + 1 :]
    return [name for name in larger if name in study.presets and name != "paper"]


def _estimate_hours(study: Study[Any], result: Result, preset: str) -> float | None:
    """Return the computing time of a preset in hours, if it repeats the tasks of a result, and None otherwise.

    A task is assumed to take as long as the mean of the tasks whose names differ in numbers only.
    """
    counts = {claim.statistic.replication.count for claim in study.claims}
    if find_differences(study, result.config, preset).keys() - counts:
        return None
    seconds = defaultdict[str, list[float]](list)
    for name, part in result.provenance["parts"].items():
        seconds[re.sub(r"\d+", "", name)].append(part["seconds"])
    kinds = [re.sub(r"\d+", "", part.name) for part in study.parts(study.presets[preset])]
    if not seconds.keys() >= set(kinds):
        return None
    return sum(sum(seconds[kind]) / len(seconds[kind]) for kind in kinds) / 3600
