"""The ledger: for each study the result that counts, and the verdicts on its claims."""

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue_lab.ledger.claims.verdicts import Evidence, Verdict, evaluate
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN, WithdrawnClaim
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.results import (
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
from trialogue_lab.ledger.runs.scale import Differences, changed_fields, reduced_fields
from trialogue_lab.ledger.study import Study


@dataclass(frozen=True)
class Entry:
    """A study with the verdicts of one result.

    Args:
        study: The study.
        result: The result that the study is judged by. None if nothing has been run.
        verdicts: The verdict on each claim of the study.
        withdrawn: The claims that the study no longer makes.
        closest: The preset that the result's config is closest to, empty without a result.
        changed: The fields in which the config differs from that preset: the run's value and the preset's.
    """

    study: Study[Any]
    result: Result | None
    verdicts: tuple[Verdict, ...]
    withdrawn: tuple[WithdrawnClaim, ...] = ()
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
        return Entry(study, None, tuple(nothing), study.withdrawn)
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
    verdicts = tuple(evaluate(study.claims, evidence))
    return Entry(study, result, verdicts, study.withdrawn, closest, changed)


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


def own_entries(
    counting: Entry, runs: Path = RUNS, warn: Callable[[str], object] = warnings.warn
) -> list[Entry]:
    """Return the entries of a user's own runs of a study.

    Args:
        counting: The entry of the study's result that counts, which is left out.
        runs: The folder of the user's runs.
        warn: Called with one line for each result that is corrupted, which is left out.

    Returns:
        One entry per finished run of the study's current version, in the order in which the runs finished, without
        withdrawn claims.
    """
    study = counting.study
    finished = finished_results(study.name, runs, warn)
    found = [result for result in finished if result.version == study.version]
    shown = counting.result.folder if counting.result else None
    return [replace(judged(study, result), withdrawn=()) for result in found if result.folder != shown]


def select(
    entries: Iterable[Entry], *, answers: Collection[str] = (), origins: Collection[str] = ()
) -> list[Entry]:
    """Return the entries with the chosen claims only.

    Args:
        entries: Entries of the ledger.
        answers: Verdicts to keep, such as "refuted" or "withdrawn". Empty for all.
        origins: Origins to keep, "published" or "ours". Empty for both.

    Returns:
        The entries that have such claims, without their other claims.
    """

    def chosen(answer: str, origin: str) -> bool:
        return (not answers or answer in answers) and (not origins or origin in origins)

    selected = [
        replace(
            entry,
            verdicts=tuple(one for one in entry.verdicts if chosen(one.answer, one.claim.origin)),
            withdrawn=tuple(one for one in entry.withdrawn if chosen(WITHDRAWN, one.origin)),
        )
        for entry in entries
    ]
    return [entry for entry in selected if entry.verdicts or entry.withdrawn]


def ledger_records(entries: Iterable[Entry]) -> list[dict[str, object]]:
    """Return one flat record per claim, as strict JSON holds it.

    Withdrawn claims follow the other claims of their study, with the verdict "withdrawn". All records have the same
    keys. A value that is unknown or not finite is None.
    """
    return [
        record
        for entry in entries
        for record in (
            *(_verdict_record(entry, verdict) for verdict in entry.verdicts),
            *(_withdrawn_record(entry, claim) for claim in entry.withdrawn),
        )
    ]


COLUMNS = (
    "study", "claim", "title", "statement", "statement_id", "origin", "registered", "source", "published", "setting",
    "verdict", "last_verdict", "withdrawn_on", "reason", "estimate", "low", "high", "alpha", "direction", "threshold",
    "margin", "grade", "unit", "replications", "replications_needed", "power", "smallest_effect", "remarks", "preset",
    "result", "changed",
)  # fmt: skip
"""Keys of a record, in their order."""


def _verdict_record(entry: Entry, verdict: Verdict) -> dict[str, object]:
    claim = verdict.claim
    numbers = ("estimate", "low", "high", "alpha", "power", "smallest_effect")
    return dict.fromkeys(COLUMNS) | {
        "study": entry.study.name,
        "claim": claim.id,
        "title": claim.title or None,
        "statement": claim.said,
        "statement_id": claim.statement_id or None,
        "origin": claim.origin,
        "registered": verdict.registered,
        "source": claim.source,
        "published": claim.published,
        "setting": claim.setting or None,
        "verdict": verdict.answer,
        "reason": verdict.reason,
        "direction": claim.criterion.direction,
        "threshold": claim.criterion.threshold,
        "margin": claim.criterion.margin,
        "grade": claim.grade,
        "unit": claim.unit,
        "replications": verdict.replications,
        "replications_needed": verdict.needed,
        "remarks": list(verdict.remarks),
        "preset": entry.result.preset if entry.result else None,
        "result": entry.result.hash if entry.result else None,
        "changed": {name: list(values) for name, values in entry.changed.items()},
        **{name: _finite(getattr(verdict, name)) for name in numbers},
    }


def _withdrawn_record(entry: Entry, claim: WithdrawnClaim) -> dict[str, object]:
    return dict.fromkeys(COLUMNS) | {
        "study": entry.study.name,
        "claim": claim.id,
        "statement": claim.statement,
        "statement_id": claim.statement_id or None,
        "origin": claim.origin,
        "source": claim.source,
        "published": claim.published,
        "verdict": WITHDRAWN,
        "last_verdict": claim.last_verdict,
        "withdrawn_on": claim.withdrawn_on,
        "reason": claim.reason,
        "remarks": [],
        "result": claim.result or None,
        "changed": {},
        **{name: _finite(getattr(claim, name)) for name in ("estimate", "low", "high")},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def ledger_frame(entries: Iterable[Entry]) -> DataFrame:
    """Return a DataFrame with one row per claim and the columns of `ledger_records`."""
    return DataFrame(ledger_records(entries))
