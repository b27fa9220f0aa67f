"""How the claims of the study `potts-coherence` are built, and their pilot.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

from collections.abc import Callable, Sequence

from pandas import DataFrame, Series

from trialogue.ledger import Claim, Pilot
from trialogue.ledger.claims import Direction

REPLICATIONS = 10
PILOT_SEEDS: tuple[int, ...] = ()
PILOT: dict[str, tuple[float, ...]] = {}
"""Estimates of every claim with replications from the pilot, one per seed of `PILOT_SEEDS`."""
NOT_PRINTED = "not printed"
EQUAL = 1e-10
"""Numbers that are the same but for rounding."""
LAW = 1e-12
"""Total variation of laws that are the same but for rounding."""


def replicated(
    identity: str,
    statement: str,
    source: str,
    published: str,
    estimate: Callable[[DataFrame], "Series[float]"],
    threshold: float,
    direction: Direction,
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
        unit="draw",
        replications=REPLICATIONS,
        pilot=Pilot(seeds=PILOT_SEEDS, estimates=PILOT[identity]) if identity in PILOT else None,
    )


def exact(
    identity: str,
    statement: str,
    source: str,
    published: str,
    estimate: Callable[[DataFrame], float],
    threshold: float,
    direction: Direction,
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
        unit="exact",
    )
