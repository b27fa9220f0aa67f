"""The ledger: for each study the result that counts, and the verdicts on its claims."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.ledger.claims.verdicts import Evidence, Verdict, evaluate
from trialogue.ledger.claims.withdrawn import WITHDRAWN, WithdrawnClaim
from trialogue.ledger.rows import Rows
from trialogue.ledger.runs.results import (
    COUNTING,
    Result,
    config_hash,
    config_values,
    is_finished,
    open_result,
    results_to_read,
)
from trialogue.ledger.study import Study


@dataclass(frozen=True)
class Entry:
    """A study, its result and its verdicts.

    Args:
        study: The study.
        result: The result that the study is judged by. None if nothing has been run.
        verdicts: The verdict on each claim of the study.
        withdrawn: The claims that the study no longer makes.
    """

    study: Study[Any]
    result: Result | None
    verdicts: tuple[Verdict, ...]
    withdrawn: tuple[WithdrawnClaim, ...] = ()

    @cached_property
    def rows(self) -> Rows:
        """The rows of the result by kind; none without a result."""
        return self.study.rows(self.result) if self.result else Rows([])

    @property
    def scale(self) -> str:
        """Of which preset the result is, whether that counts, and that a larger one is published where there is one."""
        if self.result is None:
            return ""
        if self.result.preset not in COUNTING:
            return f"{self.result.preset or 'a config of your own'}, which does not count"
        reduced = "paper" in self.study.presets and self.result.preset != "paper"
        return f"{self.result.preset}, a reduced scale" if reduced else self.result.preset


def judged(study: Study[Any], result: Result | None) -> Entry:
    """The entry of one study judged by `result`; without a result every claim is not tested."""
    if result is None:
        nothing = [
            Verdict(claim=claim, answer="not tested", reason="no finished run of a preset")
            for claim in study.claims
        ]
        return Entry(study, None, tuple(nothing), study.withdrawn)
    evidence = Evidence(
        rows=study.rows(result),
        config=result.config,
        preset=result.preset,
        registration=result.registration,
        stored=result.estimates,
        pilot=study.pilot,
    )
    return Entry(study, result, tuple(evaluate(study.claims, evidence)), study.withdrawn)


def counting_result(
    study: Study[Any], results: str | Path | None = None, presets: Sequence[str] = COUNTING
) -> Result | None:
    """The result that counts: of the `presets` of this version that are finished, the last, which is the largest.

    Where no folder of results is named, those of `results_to_read` are meant.
    """
    place = results_to_read(results)
    for preset in reversed(presets):
        if preset in study.presets:
            name = config_hash(study.name, study.version, config_values(study.presets[preset]))
            folder = place / study.name / name
            if is_finished(folder):
                return open_result(folder)
    return None


def ledger(studies: Iterable[Study[Any]], results: str | Path | None = None) -> list[Entry]:
    """The entry of every study, judged by the result that counts (see `counting_result`)."""
    return [judged(study, counting_result(study, results)) for study in studies]


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


def _verdict_record(entry: Entry, verdict: Verdict) -> dict[str, object]:
    claim = verdict.claim
    return {
        "study": entry.study.name,
        "claim": claim.id,
        "statement": claim.said,
        "statement_id": claim.statement_id or None,
        "origin": claim.origin,
        "registered": verdict.registered,
        "source": claim.source,
        "published": claim.published,
        "setting": claim.setting or None,
        "verdict": verdict.answer,
        "last_verdict": None,
        "withdrawn_on": None,
        "reason": verdict.reason,
        "estimate": _finite(verdict.estimate),
        "low": _finite(verdict.low),
        "high": _finite(verdict.high),
        "alpha": _finite(verdict.alpha),
        "direction": claim.criterion.direction,
        "threshold": claim.criterion.threshold,
        "margin": claim.criterion.margin,
        "grade": claim.grade,
        "unit": claim.unit,
        "replications": verdict.replications,
        "replications_needed": verdict.needed,
        "power": _finite(verdict.power),
        "smallest_effect": _finite(verdict.smallest_effect),
        "remarks": list(verdict.remarks),
        "preset": entry.result.preset if entry.result else None,
        "result": entry.result.hash if entry.result else None,
    }


def _withdrawn_record(entry: Entry, claim: WithdrawnClaim) -> dict[str, object]:
    return {
        "study": entry.study.name,
        "claim": claim.id,
        "statement": claim.statement,
        "statement_id": claim.statement_id or None,
        "origin": claim.origin,
        "registered": True,
        "source": claim.source,
        "published": claim.published,
        "setting": None,
        "verdict": WITHDRAWN,
        "last_verdict": claim.last_verdict,
        "withdrawn_on": claim.withdrawn_on,
        "reason": claim.reason,
        "estimate": _finite(claim.estimate),
        "low": _finite(claim.low),
        "high": _finite(claim.high),
        "alpha": None,
        "direction": None,
        "threshold": None,
        "margin": None,
        "grade": None,
        "unit": None,
        "replications": None,
        "replications_needed": None,
        "power": None,
        "smallest_effect": None,
        "remarks": [],
        "preset": None,
        "result": claim.result or None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def ledger_frame(entries: Iterable[Entry]) -> DataFrame:
    """Return a DataFrame with one row per claim and the columns of `ledger_records`."""
    return DataFrame(ledger_records(entries))
