"""How the claims of the study `parallel-gap` are built, and their pilot.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

from collections.abc import Callable, Sequence

from pandas import DataFrame, Series

from trialogue.ledger import Claim, Pilot
from trialogue.ledger.claims import Direction, Unit

RUNS, TRAININGS = 20, 6
PILOT_SEEDS: dict[Unit, tuple[int, ...]] = {
    "draw": tuple(range(100, 108)),
    "training": tuple(range(100, 104)),
}
PILOT: dict[str, tuple[float, ...]] = {
    "one-step-against-many-simulated": (0.09, 0.095, 0.085, 0.085, 0.085, 0.08, 0.1, 0.1),
    "parallel-stays-away-simulated": (0, 0, 0, 0, 0, 0, 0, 0),
    "hits-in-time-simulated": (0.095, 0.085, 0.09, 0.08, 0.1, 0.085, 0.08, 0.095),
    "simulated-as-computed": (
        -3.754e-05,
        -0.002538,
        0.003712,
        -0.0008709,
        0.007046,
        -0.01045,
        0.002462,
        0.001629,
    ),
    "networks-reach-the-best-product": (3.315e-05, 7.194e-05, 6.113e-05, 0.0001589),
    "networks-are-far-in-variation": (0.08058, 0.08058, 0.08057, 0.0805),
    "networks-can-imitate-products": (0.001022, 0.0003432, 0.0003725, 0.0002669),
    "networks-lose-the-modes": (0.875, 0.875, 0.875, 0.875),
}
"""Estimates of every claim with replications from the pilot, one per seed of its unit."""
ROUNDING = -1e-9
"""Differences of probabilities and divergences above this count as not negative."""
NOT_PRINTED = "not printed"


def replicated(
    identity: str,
    statement: str,
    source: str,
    published: str,
    estimate: Callable[[DataFrame], "Series[float]"],
    threshold: float,
    direction: Direction,
    unit: Unit = "draw",
    margin: float = 0.0,
) -> Claim:
    """A claim with one estimate per seed."""

    def estimates(rows: DataFrame) -> Sequence[float]:
        return estimate(rows).tolist()

    return Claim(
        id=identity,
        statement=statement,
        source=source,
        published=published,
        estimate=estimates,
        threshold=threshold,
        direction=direction,
        margin=margin,
        unit=unit,
        replications=RUNS if unit == "draw" else TRAININGS,
        pilot=Pilot(seeds=PILOT_SEEDS[unit], estimates=PILOT[identity]) if identity in PILOT else None,
    )


def exact(
    identity: str,
    statement: str,
    source: str,
    published: str,
    estimate: Callable[[DataFrame], float],
    threshold: float,
    direction: Direction,
    margin: float = 0.0,
) -> Claim:
    """A claim with one number and no sampling error."""
    return Claim(
        id=identity,
        statement=statement,
        source=source,
        published=published,
        estimate=lambda rows: [float(estimate(rows))],
        threshold=threshold,
        direction=direction,
        margin=margin,
        unit="exact",
    )
