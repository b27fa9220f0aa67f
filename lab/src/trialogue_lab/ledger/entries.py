"""The ledger: one entry per study, with the verdicts on all its claims."""

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.display.numbers import finite_or_none
from trialogue_lab.ledger.claims.claims import Claim
from trialogue_lab.ledger.claims.verdicts import Evidence, Verdict, evaluate
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN, WithdrawnClaim
from trialogue_lab.ledger.pages.screens import document_of, matches
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.larger import add_larger_presets
from trialogue_lab.ledger.runs.results import (
    COUNTING,
    RUNS,
    Result,
    config_hash,
    config_values,
    finished_results,
    is_finished,
    open_result,
    search_folders,
)
from trialogue_lab.ledger.runs.scale import Differences, changed_fields, reduced_fields
from trialogue_lab.ledger.settings import format_value
from trialogue_lab.ledger.study import Study

UNCOUNTED = "not in the totals, which are of the committed results"
"""Remark on a run whose verdicts do not count."""


@dataclass(frozen=True)
class Entry:
    """A study with the verdicts on its claims, from one result.

    Args:
        study: The study, an experiment that tests claims of a publication.
        result: The stored result that decided the claims, or None if nothing has been run.
        verdicts: One verdict per claim of the study.
        withdrawn: Claims that the study no longer makes.
        closest: The preset (named config) closest to the config of the result. Empty without a result.
        changed: Config fields that differ from that preset: value of the run, value of the preset.
    """

    study: Study[Any]
    result: Result | None
    verdicts: tuple[Verdict, ...]
    withdrawn: tuple[WithdrawnClaim, ...] = ()
    closest: str = ""
    changed: Differences = field(default_factory=dict)

    @cached_property
    def rows(self) -> Rows:
        """Measurements of the result by kind. Empty without a result."""
        return self.study.rows(self.result) if self.result else Rows([])

    @property
    def scale(self) -> str:
        """Text that names the preset (named config) of the result, and whether its verdicts count. May be empty."""
        if self.result is None:
            return ""
        preset = self.result.preset
        if preset is None:
            fields = ", ".join(
                f"{name} = {format_value(mine)} (not {format_value(theirs)})"
                for name, (mine, theirs) in self.changed.items()
            )
            return f"{self.closest} with {fields}: {UNCOUNTED}"
        if preset not in COUNTING:
            return f"{preset}: {UNCOUNTED}"
        reduced = "paper" in self.study.presets and preset != "paper"
        return f"{preset}, a reduced scale" if reduced else preset


def judged(study: Study[Any], result: Result | None) -> Entry:
    """Decide all claims of a study from the measurements in one stored result.

    Args:
        study: The study, an experiment that tests claims of a publication.
        result: The stored result. With None, no claim is tested.

    Returns:
        The study with one verdict per claim.
    """
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
    verdicts = tuple(add_larger_presets(study, result, evaluate(study.claims, evidence)))
    entry = Entry(study, result, verdicts, study.withdrawn, closest, changed)
    # The cached property keeps these rows, so that tables and figures reuse the statistics of the verdicts.
    vars(entry)["rows"] = evidence.rows
    return entry


def counting_result(
    study: Study[Any], results: str | Path | None = None, presets: Sequence[str] = COUNTING
) -> Result | None:
    """Return the stored result from which the claims of a study are officially decided.

    Args:
        study: The study, an experiment that tests claims of a publication.
        results: Folder of results. By default, the first of `search_folders` with such a result.
        presets: Names of configs large enough to count, from small to large (default: `COUNTING`).

    Returns:
        The finished result of the largest preset for the study's current version, or None.
    """
    for place in search_folders(results):
        for preset in reversed(presets):
            if preset in study.presets:
                name = config_hash(study.name, study.version, config_values(study.presets[preset]))
                folder = place / study.name / name
                if is_finished(folder):
                    return open_result(folder)
    return None


def ledger(studies: Iterable[Study[Any]], results: str | Path | None = None) -> list[Entry]:
    """Decide whether the claims of several studies hold, from stored measurements.

    Each study is decided from one result: the finished run of its largest preset (see `counting_result`). Without such
    a run, its claims have no verdict.

    Args:
        studies: Studies that test claims of publications.
        results: Folder of results. By default, the first of `search_folders` with such a result.

    Returns:
        One entry per study, with the verdicts on its claims.
    """
    return [judged(study, counting_result(study, results)) for study in studies]


def own_entries(
    counting: Entry, runs: Path = RUNS, warn: Callable[[str], object] = warnings.warn
) -> list[Entry]:
    """Decide the claims of a study from each run that the user made.

    Args:
        counting: The official entry of the study. Its result is left out.
        runs: Folder of the user's runs (default: "runs").
        warn: Called with a one-line message for each corrupted result, and for all results of other versions of the
            study. These results are left out.

    Returns:
        Entries in the order in which the runs finished, without withdrawn claims. Only runs of the study's current
        version are included.
    """
    study = counting.study
    finished = finished_results(study.name, runs, warn)
    found = [result for result in finished if result.version == study.version]
    if others := [result for result in finished if result.version != study.version]:
        names = ", ".join(f"{result.study}@{result.hash}" for result in others)
        versions = " and ".join(sorted({str(result.version) for result in others}))
        warn(
            f"your runs {names} are not shown, because they have version {versions} of {study.name}, which is now "
            f"{study.version}: use `trialogue run {study.name}` to measure again"
        )
    shown = counting.result.folder if counting.result else None
    return [replace(judged(study, result), withdrawn=()) for result in found if result.folder != shown]


def select(
    entries: Iterable[Entry],
    *,
    answers: Collection[str] = (),
    origins: Collection[str] = (),
    statement: str = "",
    documents: Collection[str] = (),
) -> list[Entry]:
    """Return the entries, restricted to claims with the given verdicts, origins, statement and publications.

    Args:
        entries: One entry per study, with the verdicts on its claims.
        answers: Verdicts to keep, for example "refuted" or "withdrawn". Empty for all.
        origins: "published" or "ours". Empty for both.
        statement: Id, study, place or words of claims (see `matches`). Empty for all.
        documents: Keys of publications. Empty for all.

    Returns:
        Entries that still have claims.
    """
    from trialogue_lab.ledger.stored import summarize

    def is_chosen(entry: Entry, answer: str, claim: Claim | WithdrawnClaim) -> bool:
        record = {
            "study": entry.study.name,
            "claim": claim.id,
            "title": getattr(claim, "title", ""),
            **vars(claim),
        }
        return (
            (not answers or answer in answers)
            and (not origins or claim.origin in origins)
            and (not statement or matches(record, statement))
            and (not documents or document_of(record, summarize(entry).document) in documents)
        )

    selected = [
        replace(
            entry,
            verdicts=tuple(one for one in entry.verdicts if is_chosen(entry, one.answer, one.claim)),
            withdrawn=tuple(one for one in entry.withdrawn if is_chosen(entry, WITHDRAWN, one)),
        )
        for entry in entries
    ]
    return [entry for entry in selected if entry.verdicts or entry.withdrawn]


def ledger_records(entries: Iterable[Entry]) -> list[dict[str, object]]:
    """Return one flat dict per claim, with values that strict JSON can represent.

    All dicts have the keys `COLUMNS`. Unknown and non-finite values are None. Withdrawn claims come after the other
    claims of their study, with the verdict "withdrawn".
    """
    records = []
    for entry in entries:
        records += [_verdict_record(entry, verdict) for verdict in entry.verdicts]
        records += [_withdrawn_record(entry, claim) for claim in entry.withdrawn]
    return records


COLUMNS = (
    "study", "claim", "title", "measured", "statement", "statement_id", "origin", "registered", "source",
    "published", "setting", "verdict", "last_verdict", "withdrawn_on", "reason", "estimate", "low", "high", "alpha",
    "direction", "threshold", "margin", "grade", "unit", "replications", "required_replications",
    "replications_to_decide", "larger_preset", "larger_hours", "power", "smallest_effect", "remarks", "preset",
    "result", "changed",
)  # fmt: skip
"""Keys of a record, in order."""


def _verdict_record(entry: Entry, verdict: Verdict) -> dict[str, object]:
    claim = verdict.claim
    numbers = ("estimate", "low", "high", "alpha", "power", "smallest_effect")
    return dict.fromkeys(COLUMNS) | {
        "study": entry.study.name,
        "claim": claim.id,
        "title": claim.title or None,
        "measured": claim.measured or None,
        "statement": claim.full_statement,
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
        "required_replications": verdict.required,
        "replications_to_decide": verdict.to_decide,
        "larger_preset": verdict.larger_preset,
        "larger_hours": verdict.larger_hours,
        "remarks": list(verdict.remarks),
        "preset": entry.result.preset if entry.result else None,
        "result": entry.result.hash if entry.result else None,
        "changed": {name: list(values) for name, values in entry.changed.items()},
        **{name: finite_or_none(getattr(verdict, name)) for name in numbers},
    }


def _withdrawn_record(entry: Entry, claim: WithdrawnClaim) -> dict[str, object]:
    texts = ("statement", "origin", "source", "published", "last_verdict", "withdrawn_on", "reason")
    return dict.fromkeys(COLUMNS) | {
        "study": entry.study.name,
        "claim": claim.id,
        "statement_id": claim.statement_id or None,
        "verdict": WITHDRAWN,
        "remarks": [],
        "result": claim.result or None,
        "changed": {},
        **{name: getattr(claim, name) for name in texts},
        **{name: finite_or_none(getattr(claim, name)) for name in ("estimate", "low", "high")},
    }


def ledger_frame(entries: Iterable[Entry]) -> DataFrame:
    """Return a DataFrame with one row per claim and the columns `COLUMNS`."""
    return DataFrame(ledger_records(entries))
