"""Verdicts: what the rows of a result answer to the claims of its study.

The interval decides. Error is controlled per study: `ALPHA` over its registered published claims with sampling error,
and as much over ours (Bonferroni). Power explains an undecided claim; it never hides a decided one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trialogue.intervals import Interval
from trialogue_lab.ledger.claims.claims import Claim, Precondition, Registration
from trialogue_lab.ledger.claims.intervals import Counts, interval
from trialogue_lab.ledger.claims.pilots import Pilot
from trialogue_lab.ledger.claims.power import power, smallest_effect
from trialogue_lab.ledger.claims.statistics import Decision, decide
from trialogue_lab.ledger.rows import Rows

ALPHA = 0.05
"""Error rate of the registered published claims of one study together, and of ours."""

TOLERANCE = 1e-9
"""How far estimates may differ from those stored with the rows, relative to their size where that is above 1."""

LATE = "registered after the run"
DECIDE_NOTHING = ("smoke", "pilot")

Estimates = Mapping[str, Mapping[int, Sequence[float]]]
"""Estimates by claim, then by the version of its statistic."""

Answer = Literal["holds", "refuted", "undecided", "not tested", "altered since the run"]
ANSWERS: tuple[Answer, ...] = ("holds", "refuted", "undecided", "not tested", "altered since the run")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What claims are judged by: the rows of one result, and what was fixed with them.

    `config` holds the values of the run's config, `registration` the claims as the run began, and `stored` what their
    statistics gave when it ended. `reduced` holds the fields that make the run smaller than the preset `default`, with
    both values: such a run decides nothing.
    """

    rows: Rows
    config: Mapping[str, Any]
    preset: str | None = None
    registration: Registration = field(default_factory=Registration)
    stored: Estimates = field(default_factory=dict)
    pilot: Pilot = field(default_factory=Pilot)
    reduced: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the rows answer to a claim.

    `power` is the pilot's and `smallest_effect` what the run could have seen, both NaN where unknown; `remarks` are
    what a reader must know besides.
    """

    claim: Claim
    answer: Answer
    reason: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    replications: int = 0
    needed: int = 0
    power: float = math.nan
    smallest_effect: float = math.nan
    alpha: float = math.nan
    registered: bool = False
    remarks: tuple[str, ...] = ()


def evaluate(claims: Sequence[Claim], evidence: Evidence) -> list[Verdict]:
    """The verdict on every claim, by the `evidence` of one result."""
    return [_judge(claim, claims, evidence) for claim in claims]


def stored_estimates(claims: Sequence[Claim], rows: Rows) -> dict[str, dict[str, Any]]:
    """What is stored with the rows when a run ends: version and estimates of every claim's statistic."""
    return {
        claim.id: {"version": claim.statistic.version, "estimates": claim.statistic(rows).tolist()}
        for claim in claims
    }


def _judge(claim: Claim, claims: Sequence[Claim], evidence: Evidence) -> Verdict:
    series = claim.statistic(evidence.rows)
    counts = claim.statistic.counts(evidence.rows)
    estimates = series.to_numpy(dtype=np.float64)
    needed = claim.statistic.replication.required(evidence.config)
    alpha = evidence.registration.level(claim, claims, ALPHA) if claim.sampled else math.nan
    registered = evidence.registration.holds(claim)
    usable = len(estimates) > 0 and bool(np.isfinite(_scaled(claim, estimates)).all())
    seen = _interval(claim, estimates, counts, alpha) if usable else Interval(math.nan, math.nan, math.nan)
    # The power of the interval of shares is unknown: it depends on how trainings would fail that did not fail yet.
    has_power = claim.sampled and counts is None
    foreseen = _foreseen(claim, evidence.pilot, needed, alpha) if has_power else math.nan
    effect = smallest_effect(claim.criterion, estimates, alpha) if usable and has_power else math.nan
    remarks = [] if registered else [LATE]
    stored = evidence.stored.get(claim.id, {})
    changed = _differs(claim, estimates, counts, alpha, stored.get(claim.statistic.version))
    obstacle = _obstacle(claim, series.index.tolist(), needed, evidence)
    answer: Answer
    if changed:
        answer, reason = "altered since the run", _both(stored[claim.statistic.version], estimates)
    elif obstacle:
        answer, reason = "not tested", obstacle
    elif not usable:
        answer, reason = "undecided", "an estimate is not a finite number" + _above_zero(claim)
    else:
        answer = _decision(claim, seen)
        reason = _REASONS[answer]
        if math.isnan(seen.low):
            reason = "all replications agree, so that there is no interval"
        elif answer == "undecided":
            reason += _could_see(claim, foreseen, effect)
            if counts is not None and not counts.identical:
                reason += _reach(claim, len(estimates), alpha)
        if claim.sampled:
            remarks += _leaning(claim, series.index.tolist(), estimates, counts, alpha, answer)
    if claim.statistic.corrections:
        first = stored.get(min(stored, default=1))
        numbers = f": {_both(first, estimates)}" if first is not None else ""
        remarks.append(f"corrected, {'; '.join(claim.statistic.corrections)}{numbers}")
    return Verdict(
        claim=claim,
        answer=answer,
        reason=reason,
        estimate=seen.estimate,
        low=seen.low,
        high=seen.high,
        replications=len(estimates),
        needed=needed,
        power=foreseen,
        smallest_effect=effect,
        alpha=alpha,
        registered=registered,
        remarks=tuple(remarks),
    )


_REASONS = {
    "holds": "the interval lies on the claimed side",
    "refuted": "the interval lies on the other side",
    "undecided": "the interval crosses the threshold",
}


def _decision(claim: Claim, seen: Interval) -> Decision:
    """What an interval decides; without one, nothing."""
    return "undecided" if math.isnan(seen.low) else decide(seen.low, seen.high, claim.criterion)


def _above_zero(claim: Claim) -> str:
    return " above zero" if claim.statistic.logarithmic else ""


def _obstacle(claim: Claim, labels: Sequence[object], needed: int, evidence: Evidence) -> str:
    """Why the claim cannot be judged; empty where it can. `labels` name the replications of its estimates."""
    if evidence.preset in DECIDE_NOTHING:
        return f"the preset {evidence.preset} decides nothing"
    if evidence.reduced:
        fields = ", ".join(
            f"{name} = {_short(mine)} (default: {_short(full)})"
            for name, (mine, full) in evidence.reduced.items()
        )
        return f"this run is smaller than the preset default, so that it decides nothing: {fields}"
    for precondition in claim.preconditions:
        if obstacle := _unmet(precondition, evidence.rows):
            return obstacle
    if not labels:
        absent = claim.statistic.absence(evidence.rows)
        return f"the rows hold no estimate: {absent}" if absent else "the rows hold no estimate"
    if not claim.sampled:
        return "" if len(labels) == 1 else f"an exact claim has one number, the rows give {len(labels)}"
    if _share_seeds(evidence):
        return "the rows hold seeds of the pilot"
    if len(labels) != needed or len(set(labels)) < needed:
        return f"{len(labels)} of {needed} replications"
    return "one replication has no interval" if needed < 2 else ""


def _short(value: Any) -> str:
    """Return the text of a value, or of its length if it is a long list."""
    return f"{len(value)} values" if isinstance(value, list) and len(value) > 4 else str(value)


def _unmet(precondition: Precondition, rows: Rows) -> str:
    """Return why a precondition is not met, empty if the mean of its statistic lies in its criterion's region."""
    criterion = precondition.criterion
    estimates = criterion.statistic(rows).to_numpy(dtype=np.float64)
    if not len(estimates) or not np.isfinite(estimates).all():
        return f"precondition cannot be checked, the rows hold no estimate: {precondition.statement}"
    mean = float(np.exp(np.log(estimates).mean()) if criterion.statistic.logarithmic else estimates.mean())
    return (
        "" if decide(mean, mean, criterion) == "holds" else f"precondition not met: {precondition.statement}"
    )


def _share_seeds(evidence: Evidence) -> bool:
    return bool(set(evidence.pilot.seeds) & {record.get("seed") for record in evidence.rows.records})


def _scaled(claim: Claim, estimates: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """The estimates on the scale on which they are averaged."""
    if not claim.statistic.logarithmic or not claim.sampled:
        return estimates
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(estimates)


def _interval(
    claim: Claim, estimates: NDArray[np.floating[Any]], counts: Counts | None, alpha: float
) -> Interval:
    if not claim.sampled:
        return Interval(*[float(estimates[0])] * 3)
    return interval(estimates, alpha, logarithmic=claim.statistic.logarithmic, counts=counts)


def _foreseen(claim: Claim, pilot: Pilot, needed: int, alpha: float) -> float:
    """The power that the pilot showed, NaN without one."""
    estimates = np.array(pilot.estimates.get(claim.statistic.name, ()), dtype=np.float64)
    return power(claim.criterion, estimates, needed, alpha)


def _could_see(claim: Claim, foreseen: float, effect: float) -> str:
    said = "" if math.isnan(foreseen) else f"; the pilot showed a power of {foreseen:.2f}"
    if math.isnan(effect):
        return said
    size = f"a factor of {effect:.3g}" if claim.statistic.logarithmic else f"{effect:.3g}"
    if claim.criterion.direction == "equal":
        return f"{said}; that it differs by less than {size} could have been confirmed"
    return f"{said}; {size} from the threshold could have been seen"


def _reach(claim: Claim, replications: int, alpha: float) -> str:
    """State where the interval of shares would end if all replications agreed with the claim."""
    if claim.criterion.direction == "equal":
        return ""
    reach = math.exp(math.log(alpha / 2) / replications)
    end = f"1, the interval would start at {reach:.3g}"
    if claim.criterion.direction == "below":
        end = f"0, the interval would end at {1 - reach:.3g}"
    return f"; if all {replications} replications were {end}"


def _leaning(
    claim: Claim,
    labels: Sequence[object],
    estimates: NDArray[np.floating[Any]],
    counts: Counts | None,
    alpha: float,
    answer: Answer,
) -> list[str]:
    """A remark where the verdict would be another one if a single replication were left out."""
    for place in sorted(np.unique(estimates, return_index=True)[1]):  # equal replications give equal answers
        rest = np.delete(estimates, place)
        counted = counts and _without(counts, place)
        left = _decision(claim, _interval(claim, rest, counted, alpha))
        if left != answer:
            return [f"the verdict is {left} if {claim.unit} {labels[place]} is left out"]
    return []


def _without(counts: Counts, place: int) -> Counts:
    successes, trials = (each.drop(each.index[place]) for each in counts[:2])
    return Counts(successes, trials, counts.identical)


def _differs(
    claim: Claim,
    estimates: NDArray[np.floating[Any]],
    counts: Counts | None,
    alpha: float,
    stored: Sequence[float] | None,
) -> bool:
    """Whether the statistic gives other numbers than those `stored`, or numbers that decide otherwise."""
    if stored is None:
        return False
    earlier = np.array(stored, dtype=np.float64)
    if len(earlier) != len(estimates):
        return True
    same = (earlier == estimates) | (np.isnan(earlier) & np.isnan(estimates))
    with np.errstate(invalid="ignore"):
        close = np.abs(earlier - estimates) <= TOLERANCE * np.maximum(1.0, np.abs(earlier))
    if not bool((same | close).all()):
        return True
    if bool(same.all()) or not np.isfinite([_scaled(claim, earlier), _scaled(claim, estimates)]).all():
        return False
    before, now = (_interval(claim, numbers, counts, alpha) for numbers in (earlier, estimates))
    return _decision(claim, before) != _decision(claim, now)


def _both(stored: Sequence[float], estimates: NDArray[np.floating[Any]]) -> str:
    """Compare the stored mean with the current one, with as many digits as it takes to tell them apart."""
    if not len(stored) or not len(estimates):
        means = [f"{np.mean(values):.6g}" if len(values) else "nothing" for values in (stored, estimates)]
        return f"the statistic gave {means[0]}, and gives {means[1]}"
    before, now = float(np.mean(stored)), float(np.mean(estimates))
    for digits in (6, 9, 12):
        if f"{before:.{digits}g}" != f"{now:.{digits}g}":
            return f"the statistic gave {before:.{digits}g}, and gives {now:.{digits}g}"
    return f"the mean, {now:.6g}, is unchanged"
