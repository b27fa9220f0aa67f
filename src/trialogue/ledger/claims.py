"""Claims and verdicts: what a source says, the number that decides it, and what our runs answer.

A claim is fixed before the run: the estimate (one number per independent replication), the threshold and its
direction, the unit and number of replications, and a pilot on other seeds that shows the power. The interval
is Student's t over the replications at level 1 - alpha, where alpha is `ALPHA` divided by the number of
claims of the study that a pilot speaks for (Bonferroni): without one a claim is not tested and spends nothing;
exact computations have an interval of width zero.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pandas import DataFrame
from scipy import special
from scipy.integrate import quad

from trialogue.errors import InputError

ALPHA = 0.05
"""Error rate of all claims of one study together."""

POWER = 0.8
"""The least probability of a decided verdict, by the pilot, for a claim to count as tested."""

Unit = Literal["training", "prompt set", "draw", "exact"]
Direction = Literal["above", "below", "equal"]
Answer = Literal["holds", "refuted", "undecided", "not tested"]


@dataclass(frozen=True, kw_only=True)
class Pilot:
    """Estimates of a claim, one per independent replication, on seeds that no reported run uses."""

    seeds: tuple[int, ...]
    estimates: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.estimates) < 2 or not all(map(math.isfinite, self.estimates)):
            raise InputError("estimates", self.estimates, "a pilot needs two or more finite numbers")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published statement and the rule that decides it.

    `estimate(rows)` returns one number per independent replication; `direction` says on which side of
    `threshold` the mean must lie, and "equal" means within `margin` of it. An exact claim has one number and
    no pilot.
    """

    id: str
    statement: str
    source: str
    published: str
    estimate: Callable[[DataFrame], Sequence[float]]
    threshold: float
    direction: Direction
    unit: Unit
    margin: float = 0.0
    replications: int = 1
    pilot: Pilot | None = None

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError("margin", self.margin, f"claim {self.id}: must not be negative")
        if self.direction != "equal" and self.margin:
            raise InputError("margin", self.margin, f"claim {self.id}: only direction 'equal' has a margin")
        if self.unit == "exact" and (self.replications != 1 or self.pilot):
            raise InputError("unit", self.unit, f"claim {self.id}: has one number and needs no pilot")
        if self.unit != "exact" and self.replications < 2:
            mend = f"claim {self.id}: an interval needs two or more replications"
            raise InputError("replications", self.replications, mend)

    @property
    def region(self) -> tuple[float, float]:
        """The means for which the claim is true; a finite end belongs to it only where `direction` is equal."""
        if self.direction == "above":
            return self.threshold, math.inf
        if self.direction == "below":
            return -math.inf, self.threshold
        return self.threshold - self.margin, self.threshold + self.margin

    def registration(self) -> dict[str, object]:
        """What must stay as it was when the run began, as JSON holds it."""
        return {
            "threshold": self.threshold,
            "direction": self.direction,
            "margin": self.margin,
            "unit": self.unit,
            "replications": self.replications,
            "pilot": {"seeds": list(self.pilot.seeds), "estimates": list(self.pilot.estimates)}
            if self.pilot
            else None,
        }


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the rows answer to a claim; `power` is the pilot's, NaN where there is none."""

    claim: Claim
    answer: Answer
    reason: str
    estimate: float
    low: float
    high: float
    replications: int
    power: float
    alpha: float


def decide(low: float, high: float, claim: Claim) -> Literal["holds", "refuted", "undecided"]:
    """Hold the interval `low..high` against the claim's region: inside, outside, or across its edge."""
    bottom, top = claim.region
    if claim.direction == "above":
        inside, outside = low > bottom, high <= bottom
    elif claim.direction == "below":
        inside, outside = high < top, low >= top
    else:
        inside, outside = bottom <= low and high <= top, high < bottom or low > top
    return "holds" if inside else "refuted" if outside else "undecided"


def interval(estimates: Sequence[float], alpha: float) -> tuple[float, float, float]:
    """Mean and Student t interval at level 1 - `alpha` over independent `estimates`; unbounded for one."""
    values = np.asarray(estimates, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, -math.inf, math.inf
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = -float(special.stdtrit(len(values) - 1, alpha / 2)) * error
    return mean, mean - half, mean + half


def power(claim: Claim, alpha: float) -> float:
    """Probability that `claim.replications` replications decide the claim, if the pilot is right.

    Estimates are taken as normal with the pilot's mean and deviation. The mean and the variance of a normal
    sample are independent, so the probability that the interval lies inside or outside the region is averaged
    over the law of the variance. NaN without a pilot, 1 for exact claims.
    """
    if claim.unit == "exact":
        return 1.0
    if claim.pilot is None:
        return math.nan
    n = claim.replications
    mean = float(np.mean(claim.pilot.estimates))
    error = float(np.std(claim.pilot.estimates, ddof=1)) / math.sqrt(n)
    if error == 0:
        return float(decide(mean, mean, claim) != "undecided")
    bottom, top = claim.region
    critical = -float(special.stdtrit(n - 1, alpha / 2))

    def decided(quantile: float) -> float:
        half = critical * error * math.sqrt(2 * float(special.gammaincinv((n - 1) / 2, quantile)) / (n - 1))
        below, above = ((edge - mean) / error for edge in (bottom - half, top + half))
        first, last = ((edge - mean) / error for edge in (bottom + half, top - half))
        inside = max(0.0, float(special.ndtr(last) - special.ndtr(first)))
        return inside + float(special.ndtr(below) + special.ndtr(-above))

    return float(quad(decided, 0, 1, limit=200, epsabs=1e-6)[0])


def evaluate(
    claims: Sequence[Claim],
    rows: DataFrame,
    *,
    preset: str | None = None,
    registered: Mapping[str, Mapping[str, object]] | None = None,
) -> list[Verdict]:
    """Judge every claim on `rows`.

    `preset` "smoke" decides nothing. `registered` holds the claims' `registration()` as the run began: a
    claim with sampling error that was added or altered since is not tested; None skips this comparison.
    """
    alpha = ALPHA / max(1, sum(claim.pilot is not None for claim in claims))
    return [_judge(claim, rows, alpha, preset, registered) for claim in claims]


def _judge(
    claim: Claim,
    rows: DataFrame,
    alpha: float,
    preset: str | None,
    registered: Mapping[str, Mapping[str, object]] | None,
) -> Verdict:
    estimates = [float(value) for value in claim.estimate(rows)]
    shown = power(claim, alpha)
    finite = bool(estimates) and all(map(math.isfinite, estimates))
    if not finite:
        mean, low, high = math.nan, math.nan, math.nan
    elif claim.unit == "exact" and len(estimates) == 1:
        mean = low = high = estimates[0]
    else:
        mean, low, high = interval(estimates, alpha)
    if preset == "smoke":
        obstacle = "the preset smoke decides nothing"
    elif not estimates:
        obstacle = "the rows hold no estimate"
    elif not finite:
        obstacle = "an estimate is not a finite number"
    elif claim.unit == "exact" and len(estimates) != 1:
        obstacle = f"an exact claim has one number, the rows give {len(estimates)}"
    elif claim.pilot is not None and "seed" in rows and rows.seed.isin(claim.pilot.seeds).any():
        obstacle = "the rows hold seeds of the pilot"
    elif len(estimates) < claim.replications:
        obstacle = f"{len(estimates)} of {claim.replications} replications"
    elif claim.unit != "exact" and claim.pilot is None:
        obstacle = "no pilot shows the power"
    elif shown < POWER:
        obstacle = f"the pilot shows a power of {shown:.2f}, less than {POWER}"
    elif claim.unit != "exact" and registered is not None and claim.id not in registered:
        obstacle = "the claim was added after the run began"
    elif claim.unit != "exact" and registered is not None and registered[claim.id] != claim.registration():
        obstacle = "the claim was altered after the run began"
    else:
        obstacle = ""
    answer: Answer = "not tested" if obstacle else decide(low, high, claim)
    reason = (
        obstacle
        or {
            "holds": "the interval lies on the claimed side",
            "refuted": "the interval lies on the other side",
            "undecided": "the interval crosses the threshold",
        }[answer]
    )
    return Verdict(
        claim=claim,
        answer=answer,
        reason=reason,
        estimate=mean,
        low=low,
        high=high,
        replications=len(estimates),
        power=shown,
        alpha=alpha,
    )
