"""The ledger: for each study the result that counts, and the verdicts on its claims."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.ledger.claims.verdicts import Evidence, Verdict, evaluate
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
    """A study, the result it is judged by (None where nothing has been run) and the verdict on each claim."""

    study: Study[Any]
    result: Result | None
    verdicts: tuple[Verdict, ...]

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
        return Entry(study, None, tuple(nothing))
    evidence = Evidence(
        rows=study.rows(result),
        config=result.config,
        preset=result.preset,
        registration=result.registration,
        stored=result.estimates,
        pilot=study.pilot,
    )
    return Entry(study, result, tuple(evaluate(study.claims, evidence)))


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
        }
        for entry in entries
        for verdict in entry.verdicts
    ]


def ledger_frame(entries: Iterable[Entry]) -> DataFrame:
    """One row per claim, with the columns of `ledger_records`."""
    return DataFrame(ledger_records(entries))
