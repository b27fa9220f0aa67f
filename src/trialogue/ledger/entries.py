"""The ledger: for each study the result that counts, and the verdicts on its claims."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.ledger.claims.verdicts import Evidence, Verdict, evaluate
from trialogue.ledger.rows import Rows
from trialogue.ledger.runs.results import (
    COUNTING,
    RUNS,
    Result,
    config_hash,
    config_values,
    finished_results,
    folders_to_read,
    is_finished,
    open_result,
)
from trialogue.ledger.runs.scale import Differences, changed_fields, reduced_fields
from trialogue.ledger.study import Study


@dataclass(frozen=True)
class Entry:
    """A study with the verdicts of one result.

    Args:
        study: The study.
        result: The result, None if nothing has been run.
        verdicts: The verdict on each claim.
        closest: The preset that the result's config is closest to, empty without a result.
        changed: The fields in which the config differs from that preset: the run's value and the preset's.
    """

    study: Study[Any]
    result: Result | None
    verdicts: tuple[Verdict, ...]
    closest: str = ""
    changed: Differences = field(default_factory=dict)

    @cached_property
    def rows(self) -> Rows:
        """The rows of the result by kind; none without a result."""
        return self.study.rows(self.result) if self.result else Rows([])

    @property
    def scale(self) -> str:
        """The preset of the result, and whether the result counts. Empty without a result."""
        if self.result is None:
            return ""
        preset = self.result.preset
        if preset is None:
            fields = ", ".join(
                f"{name} = {mine} (not {theirs})" for name, (mine, theirs) in self.changed.items()
            )
            return f"{self.closest} with {fields}; does not count"
        if preset not in COUNTING:
            return f"{preset}, which does not count"
        reduced = "paper" in self.study.presets and preset != "paper"
        return f"{preset}, a reduced scale" if reduced else preset


def judged(study: Study[Any], result: Result | None) -> Entry:
    """Return the entry of one study for `result`. Without a result, no claim is tested."""
    if result is None:
        nothing = [
            Verdict(claim=claim, answer="not tested", reason="no finished run of a preset")
            for claim in study.claims
        ]
        return Entry(study, None, tuple(nothing))
    counts = result.preset in COUNTING
    evidence = Evidence(
        rows=study.rows(result),
        config=result.config,
        preset=result.preset,
        registration=result.registration,
        stored=result.estimates,
        pilot=study.pilot,
        reduced={} if counts else reduced_fields(study, result.config),
    )
    closest, changed = changed_fields(study, result.config)
    return Entry(study, result, tuple(evaluate(study.claims, evidence)), closest, changed)


def counting_result(
    study: Study[Any], results: str | Path | None = None, presets: Sequence[str] = COUNTING
) -> Result | None:
    """Return the result that counts for a study.

    Args:
        study: The study.
        results: A folder of results. By default, the first of `folders_to_read` that has a result that counts.
        presets: Presets that count, the largest last.

    Returns:
        The finished result of the largest of the presets, at the study's version. None if there is none.
    """
    for place in folders_to_read(results):
        for preset in reversed(presets):
            if preset in study.presets:
                name = config_hash(study.name, study.version, config_values(study.presets[preset]))
                folder = place / study.name / name
                if is_finished(folder):
                    return open_result(folder)
    return None


def ledger(studies: Iterable[Study[Any]], results: str | Path | None = None) -> list[Entry]:
    """Return the entry of every study, judged by the result that counts (see `counting_result`)."""
    return [judged(study, counting_result(study, results)) for study in studies]


def own_entries(study: Study[Any], counting: Entry, runs: Path = RUNS) -> list[Entry]:
    """Return the entries of a user's own runs of a study.

    Args:
        study: The study.
        counting: The entry of the result that counts, which is left out.
        runs: The folder of the user's runs.

    Returns:
        One entry per finished run of the study's current version, in the order in which the runs finished.
    """
    found = [result for result in finished_results(study.name, runs) if result.version == study.version]
    shown = counting.result.folder if counting.result else None
    return [judged(study, result) for result in found if result.folder != shown]


def ledger_records(entries: Iterable[Entry]) -> list[dict[str, object]]:
    """One flat record per claim, as strict JSON holds it: what is not finite is null."""

    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return [
        {
            "study": entry.study.name,
            "claim": verdict.claim.id,
            "statement": verdict.claim.said,
            "origin": verdict.claim.origin,
            "registered": verdict.registered,
            "source": verdict.claim.source,
            "published": verdict.claim.published,
            "verdict": verdict.answer,
            "reason": verdict.reason,
            "estimate": number(verdict.estimate),
            "low": number(verdict.low),
            "high": number(verdict.high),
            "alpha": number(verdict.alpha),
            "direction": verdict.claim.criterion.direction,
            "threshold": verdict.claim.criterion.threshold,
            "margin": verdict.claim.criterion.margin,
            "grade": verdict.claim.grade,
            "unit": verdict.claim.unit,
            "replications": verdict.replications,
            "replications_needed": verdict.needed,
            "power": number(verdict.power),
            "smallest_effect": number(verdict.smallest_effect),
            "remarks": list(verdict.remarks),
            "preset": entry.result.preset if entry.result else None,
            "result": entry.result.hash if entry.result else None,
            "changed": {name: list(values) for name, values in entry.changed.items()},
        }
        for entry in entries
        for verdict in entry.verdicts
    ]


def ledger_frame(entries: Iterable[Entry]) -> DataFrame:
    """One row per claim, with the columns of `ledger_records`."""
    return DataFrame(ledger_records(entries))
