"""Verdicts on claims, decided by confidence intervals.

The claims of a study whose statistic is random, and that were registered before the run, share the error rate `ALPHA`
(Bonferroni correction). Published claims and claims of this project have separate error rates. Statistical power never
changes a verdict. It only explains why a claim is undecided.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.intervals import Interval
from trialogue_lab.ledger.claims.answers import ALPHA as ALPHA
from trialogue_lab.ledger.claims.answers import ANSWERS as ANSWERS
from trialogue_lab.ledger.claims.answers import INSTEAD
from trialogue_lab.ledger.claims.answers import LATE as LATE
from trialogue_lab.ledger.claims.answers import Answer as Answer
from trialogue_lab.ledger.claims.claims import ORIGINS, Claim, Origin, Precondition, Registration
from trialogue_lab.ledger.claims.intervals import Counts, interval, intervals
from trialogue_lab.ledger.claims.pilots import Pilot
from trialogue_lab.ledger.claims.power import MOST, power, replications_to_decide, smallest_effect
from trialogue_lab.ledger.claims.statistics import Decision, decide
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.settings import format_value

TOLERANCE = 1e-9
"""Largest difference between stored and recomputed estimates. It is relative above 1."""

DECIDE_NOTHING = ("smoke", "pilot")
"""Presets (named configs) whose runs are too small to test claims."""

Estimates = Mapping[str, Mapping[int, Sequence[float]]]
"""One number per replication, by claim id and version of the statistic."""

Numbers = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The measurements of one run, with everything else that is needed to decide claims from them.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        config: Config values of the run, by field.
        preset: Name of the config, None if it is not a named one.
        registration: The claims that were saved before the run.
        stored: Estimates saved at the end of the run, to detect later changes of the computation.
        pilot: Estimates of a small trial run, for the statistical power.
        reduced: Config fields that make the run smaller than the preset `default`, with the value of the run and of the
            preset. If there are any, no claim is tested.
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
    """The decision on a claim (whether it holds, is refuted or is undecided), with the numbers behind it.

    Args:
        claim: The claim.
        answer: "holds", "refuted", "undecided", "not tested" or "altered since the run".
        reason: Why this is the verdict.
        estimate: Mean of the statistic over replications. NaN if unknown, like all numbers below.
        low: Lower end of the confidence interval.
        high: Upper end of the confidence interval.
        replications: Number of measured replications.
        required: Number of replications that the config requires.
        to_decide: Number of replications that would decide an undecided claim (see `replications_to_decide`).
        larger_preset: Smallest preset with this number of replications. None if there is none.
        larger_hours: Estimated computing time of this preset in hours. None if it is unknown.
        power: Probability that a run like this one decides the claim, estimated from a pilot (small trial run).
        smallest_effect: Smallest distance from the threshold that the run could detect.
        alpha: Error rate of the confidence interval, or `claim.chance` of a claim without an interval.
        registered: Whether the claim was saved before the run.
        remarks: Remarks shown with every display of the verdict.
    """

    claim: Claim
    answer: Answer
    reason: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    replications: int = 0
    required: int = 0
    to_decide: int | None = None
    larger_preset: str | None = None
    larger_hours: float | None = None
    power: float = math.nan
    smallest_effect: float = math.nan
    alpha: float = math.nan
    registered: bool = False
    remarks: tuple[str, ...] = ()


def by_origin(verdicts: Iterable[Verdict]) -> dict[Origin, list[Verdict]]:
    """Group verdicts by the origin of their claims ("published" or "ours"). Empty groups are omitted."""
    groups: dict[Origin, list[Verdict]] = {origin: [] for origin in ORIGINS}
    for verdict in verdicts:
        groups[verdict.claim.origin].append(verdict)
    return {origin: found for origin, found in groups.items() if found}


def evaluate(claims: Sequence[Claim], evidence: Evidence) -> list[Verdict]:
    """Decide each claim of a study from the measurements of one run, and return the verdicts.

    Args:
        claims: The claims (testable statements) of the study.
        evidence: The measurements and their context.

    Returns:
        One verdict per claim, in the same order.
    """
    return [_judge(claim, claims, evidence) for claim in claims]


def stored_estimates(claims: Sequence[Claim], rows: Rows) -> dict[str, dict[str, Any]]:
    """Compute the statistics of all claims from the measurements of a run, to be saved with them.

    Args:
        claims: The claims of the study.
        rows: The measurements of the run.

    Returns:
        By claim id, the version of its statistic and one number per replication.
    """
    return {
        claim.id: {"version": claim.statistic.version, "estimates": claim.statistic(rows).tolist()}
        for claim in claims
    }


def _judge(claim: Claim, claims: Sequence[Claim], evidence: Evidence) -> Verdict:
    series = claim.statistic(evidence.rows)
    counts = claim.statistic.counts(evidence.rows)
    estimates = series.to_numpy(dtype=np.float64)
    needed = claim.statistic.replication.required(evidence.config)
    alpha = evidence.registration.level(claim, claims, ALPHA) if claim.sampled else claim.chance or math.nan
    registered = evidence.registration.holds(claim)
    usable = len(estimates) > 0 and bool(np.isfinite(_scale_estimates(claim, estimates)).all())
    found = (
        _compute_interval(claim, estimates, counts, alpha)
        if usable
        else Interval(math.nan, math.nan, math.nan)
    )
    # The power is unknown for shares, because it depends on failures that have not been observed yet.
    has_power = claim.sampled and counts is None
    pilot = np.array(evidence.pilot.estimates.get(claim.statistic.name, ()), dtype=np.float64)
    pilot_power = power(claim.criterion, pilot, needed, alpha) if has_power else math.nan
    effect = smallest_effect(claim.criterion, estimates, alpha) if usable and has_power else math.nan
    remarks = [] if registered else [LATE]
    if claim.chance:
        remarks.append(f"compares with simulations: a true statement fails with probability {claim.chance:g}")
    stored = evidence.stored.get(claim.id, {})
    changed = _estimates_differ(claim, estimates, counts, alpha, stored.get(claim.statistic.version))
    obstacle = _find_obstacle(claim, series.index.tolist(), needed, evidence)
    to_decide = None
    answer: Answer
    if changed:
        answer, reason = "altered since the run", _compare_means(stored[claim.statistic.version], estimates)
    elif obstacle:
        answer, reason = "not tested", obstacle
    elif not usable:
        answer, reason = "undecided", "an estimate is not a finite number"
        reason += " above zero" if claim.statistic.logarithmic else ""
    else:
        answer = _decide(claim, found)
        reason = _REASONS[answer]
        if math.isnan(found.low):
            reason = "all replications are equal, so that there is no interval"
        elif answer == "undecided":
            reason += _describe_power(claim, pilot_power, effect)
            if counts is not None and not counts.identical:
                reason += _describe_extreme_interval(claim, len(estimates), alpha)
            if has_power:
                to_decide = replications_to_decide(claim.criterion, estimates, alpha)
                direction = decide(found.estimate, found.estimate, claim.criterion)
                remarks.append(_describe_larger_run(to_decide, len(estimates), direction))
        if claim.sampled:
            remarks += _find_decisive_replication(
                claim, series.index.tolist(), estimates, counts, alpha, answer
            )
    if claim.statistic.corrections:
        first = stored.get(min(stored, default=1))
        numbers = f": {_compare_means(first, estimates)}" if first else ""
        remarks.append(f"corrected, {'; '.join(claim.statistic.corrections)}{numbers}")
    return Verdict(
        claim=claim,
        answer=answer,
        reason=reason,
        estimate=found.estimate,
        low=found.low,
        high=found.high,
        replications=len(estimates),
        required=needed,
        to_decide=to_decide,
        power=pilot_power,
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


def _decide(claim: Claim, found: Interval) -> Decision:
    return "undecided" if math.isnan(found.low) else decide(found.low, found.high, claim.criterion)


def _find_obstacle(claim: Claim, labels: Sequence[object], needed: int, evidence: Evidence) -> str:
    """Return why the claim cannot be tested, or "". `labels` identify the replications that were measured."""
    if evidence.preset in DECIDE_NOTHING:
        return f"the preset {evidence.preset} is too small to test claims"
    if evidence.reduced:
        fields = [
            f"{name} = {format_value(mine)} (default: {format_value(full)})"
            for name, (mine, full) in evidence.reduced.items()
        ]
        others = len(fields) - 3
        more = f" and {others} other setting{'s' * (others > 1)}" if others > 0 else ""
        return f"the run is smaller than the preset default: {', '.join(fields[:3])}{more}"
    for precondition in claim.preconditions:
        if obstacle := _explain_unmet(precondition, evidence.rows):
            return obstacle
    if not labels:
        missing = claim.statistic.missing_rows(evidence.rows)
        return f"the rows hold no estimate: {missing}" if missing else "the rows hold no estimate"
    if not claim.sampled:
        return "" if len(labels) == 1 else f"the rows give {len(labels)} numbers, but an exact claim has one"
    if evidence.rows.seeds.intersection(evidence.pilot.seeds):
        return "the rows hold seeds of the pilot"
    if len(labels) != needed or len(set(labels)) < needed:
        return f"{len(labels)} of {needed} replications"
    return "one replication has no interval" if needed < 2 else ""


def _explain_unmet(precondition: Precondition, rows: Rows) -> str:
    """Return why the precondition of a claim is not met, or ""."""
    criterion = precondition.criterion
    estimates = criterion.statistic(rows).to_numpy(dtype=np.float64)
    if not len(estimates) or not np.isfinite(estimates).all():
        return f"precondition cannot be checked because the rows hold no estimate: {precondition.statement}"
    mean = float(np.exp(np.log(estimates).mean()) if criterion.statistic.logarithmic else estimates.mean())
    return (
        "" if decide(mean, mean, criterion) == "holds" else f"precondition not met: {precondition.statement}"
    )


def _scale_estimates(claim: Claim, estimates: Numbers) -> Numbers:
    """Return the estimates, as logarithms if the statistic is averaged by logarithms."""
    if not claim.statistic.logarithmic or not claim.sampled:
        return estimates
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(estimates)


def _compute_interval(claim: Claim, estimates: Numbers, counts: Counts | None, alpha: float) -> Interval:
    if not claim.sampled:
        return Interval(*[float(estimates[0])] * 3)
    return interval(estimates, alpha, logarithmic=claim.statistic.logarithmic, counts=counts)


def _describe_power(claim: Claim, pilot_power: float, effect: float) -> str:
    shown = "" if math.isnan(pilot_power) else f"; the pilot showed a power of {pilot_power:.2f}"
    if math.isnan(effect):
        return shown
    size = f"a factor of {effect:.3g}" if claim.statistic.logarithmic else f"{effect:.3g}"
    if claim.criterion.direction == "equal":
        return f"{shown}; a difference of less than {size} could have been confirmed"
    return f"{shown}; a difference of {size} from the threshold could have been detected"


def _describe_larger_run(to_decide: int | None, replications: int, direction: Decision) -> str:
    """Return the number of replications that would decide a claim, with two digits if they suffice, as text.

    `direction` is the verdict if the true mean is the estimate.
    """
    if to_decide is None:
        return f"more than {MOST:,} repetitions {INSTEAD} {replications} would be needed to decide it"
    verb = "confirm" if direction == "holds" else "refute"
    rounded = float(f"{to_decide:.2g}")
    number = to_decide if rounded <= replications else rounded
    return f"about {number:,.0f} repetitions {INSTEAD} {replications} would probably {verb} it"


def _describe_extreme_interval(claim: Claim, replications: int, alpha: float) -> str:
    """Describe the interval for the case that all replications have the same outcome, in which it is narrowest."""
    if claim.criterion.direction == "equal":
        return ""
    reach = math.exp(math.log(alpha / 2) / replications)
    end = f"1, the interval would start at {reach:.3g}"
    if claim.criterion.direction == "below":
        end = f"0, the interval would end at {1 - reach:.3g}"
    return f"; if all {replications} replications were {end}"


def _find_decisive_replication(
    claim: Claim,
    labels: Sequence[object],
    estimates: Numbers,
    counts: Counts | None,
    alpha: float,
    answer: Answer,
) -> list[str]:
    """Return a remark if leaving out a single replication changes the verdict."""
    # It is enough to leave out one of several equal replications.
    left_out = np.sort(np.unique(estimates, return_index=True)[1])
    kept = np.array([np.delete(np.arange(len(estimates)), index) for index in left_out])
    kept_counts = counts and Counts(
        np.asarray(counts.successes)[kept], np.asarray(counts.trials)[kept], counts.identical
    )
    found = intervals(estimates[kept], alpha, logarithmic=claim.statistic.logarithmic, counts=kept_counts)
    for index, one in zip(left_out, found, strict=True):
        decision = _decide(claim, one)
        if decision != answer:
            return [f"the verdict is {decision} if {claim.unit} {labels[index]} is left out"]
    return []


def _estimates_differ(
    claim: Claim,
    estimates: Numbers,
    counts: Counts | None,
    alpha: float,
    stored: Sequence[float] | None,
) -> bool:
    """Return whether the estimates differ from the saved ones beyond rounding, or lead to another decision."""
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
    if (
        bool(same.all())
        or not np.isfinite([_scale_estimates(claim, earlier), _scale_estimates(claim, estimates)]).all()
    ):
        return False
    before, now = (_compute_interval(claim, numbers, counts, alpha) for numbers in (earlier, estimates))
    return _decide(claim, before) != _decide(claim, now)


def _compare_means(stored: Sequence[float], estimates: Numbers) -> str:
    """Return the means of saved and new estimates as text, with enough digits to show the difference."""
    for digits in (6, 9, 12):
        before, now = (
            f"{np.mean(values):.{digits}g}" if len(values) else "no estimate"
            for values in (stored, estimates)
        )
        if before != now:
            return f"the statistic gave {before}, and gives {now}"
    return f"the mean, {np.mean(estimates):.6g}, is unchanged"
