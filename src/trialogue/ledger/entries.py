"""The ledger: for each study the result that counts, and the verdicts on its claims."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pandas import DataFrame

from trialogue.ledger.claims import Claim, Verdict, evaluate
from trialogue.ledger.figures import Figure
from trialogue.ledger.results import PRESETS, Result, config_hash, config_values, is_finished, open_result
from trialogue.ledger.tables import Table


class Subject(Protocol):
    """What the ledger must know of a study; `trialogue.studies.Study` is one."""

    @property
    def name(self) -> str:
        """Name of the study."""
        ...

    @property
    def question(self) -> str:
        """What the study asks."""
        ...

    @property
    def background(self) -> str:
        """What a reader must know besides the question."""
        ...

    @property
    def source(self) -> str:
        """Where the claims come from."""
        ...

    @property
    def version(self) -> int:
        """Raised when the meaning of a row changes."""
        ...

    @property
    def presets(self) -> Mapping[str, Any]:
        """Config by name of preset."""
        ...

    @property
    def claims(self) -> Sequence[Claim]:
        """The claims, fixed before the run."""
        ...

    @property
    def tables(self) -> Sequence[Table]:
        """The tables, filled from rows."""
        ...

    @property
    def figures(self) -> Sequence[Figure]:
        """The figures, drawn from rows."""
        ...


@dataclass(frozen=True)
class Entry:
    """A study, the result it is judged by (None where nothing has been run) and the verdict on each claim."""

    study: Subject
    result: Result | None
    verdicts: tuple[Verdict, ...]


def judged(study: Subject, result: Result | None) -> Entry:
    """The entry of one study judged by `result`; without a result every claim is not tested."""
    if result is None:
        return Entry(study, None, tuple(_without_result(claim) for claim in study.claims))
    verdicts = evaluate(study.claims, result.rows, preset=result.preset, registered=result.registered)
    return Entry(study, result, tuple(verdicts))


def _without_result(claim: Claim) -> Verdict:
    nothing = math.nan
    return Verdict(
        claim=claim,
        answer="not tested",
        reason="no finished run of a preset",
        estimate=nothing,
        low=nothing,
        high=nothing,
        replications=0,
        power=nothing,
        alpha=nothing,
    )


def counting_result(study: Subject, results: str | Path = "results") -> Result | None:
    """The result that counts: of the presets of this version that are finished, the largest."""
    for preset in reversed(PRESETS):
        if preset in study.presets:
            name = config_hash(study.name, study.version, config_values(study.presets[preset]))
            folder = Path(results) / study.name / name
            if is_finished(folder):
                return open_result(folder)
    return None


def ledger(studies: Iterable[Subject], results: str | Path = "results") -> list[Entry]:
    """The entry of every study, judged by the result that counts."""
    return [judged(study, counting_result(study, results)) for study in studies]


def ledger_records(entries: Iterable[Entry]) -> list[dict[str, object]]:
    """One flat record per claim, as strict JSON holds it: what is not finite is null."""

    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return [
        {
            "study": entry.study.name,
            "claim": verdict.claim.id,
            "statement": verdict.claim.statement,
            "source": verdict.claim.source,
            "published": verdict.claim.published,
            "verdict": verdict.answer,
            "reason": verdict.reason,
            "estimate": number(verdict.estimate),
            "low": number(verdict.low),
            "high": number(verdict.high),
            "alpha": number(verdict.alpha),
            "direction": verdict.claim.direction,
            "threshold": verdict.claim.threshold,
            "margin": verdict.claim.margin,
            "unit": verdict.claim.unit,
            "replications": verdict.replications,
            "replications_needed": verdict.claim.replications,
            "power": number(verdict.power),
            "preset": entry.result.preset if entry.result else None,
            "result": entry.result.hash if entry.result else None,
        }
        for entry in entries
        for verdict in entry.verdicts
    ]


def ledger_frame(entries: Iterable[Entry]) -> DataFrame:
    """One row per claim, with the columns of `ledger_records`."""
    return DataFrame(ledger_records(entries))
