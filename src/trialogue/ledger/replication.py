"""How the claims of a study are made: those over replications, with their pilot, and exact ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pandas import DataFrame, Series

from trialogue.ledger.claims import Claim, Direction, Pilot, Unit

NOT_PRINTED = "not printed"
"""What is `published` of a claim that the source makes without a number."""


@dataclass(frozen=True, kw_only=True)
class Replication:
    """What a study repeats: the unit, how often a reported run has it, and what a pilot found on other seeds.

    `pilot` holds the estimates of claims by their id, one per seed of `pilot_seeds`.
    """

    unit: Unit
    count: int
    pilot_seeds: tuple[int, ...]
    pilot: Mapping[str, tuple[float, ...]]

    def claim(
        self,
        identity: str,
        statement: str,
        source: str,
        published: str,
        estimate: Callable[[DataFrame], "Series[float]"],
        threshold: float,
        direction: Direction,
        margin: float = 0.0,
    ) -> Claim:
        """A claim whose estimate is one number per replication, with its pilot where there is one."""

        def estimates(rows: DataFrame) -> Sequence[float]:
            return estimate(rows).tolist()

        known = self.pilot.get(identity)
        return Claim(
            id=identity,
            statement=statement,
            source=source,
            published=published,
            estimate=estimates,
            threshold=threshold,
            direction=direction,
            margin=margin,
            unit=self.unit,
            replications=self.count,
            pilot=None if known is None else Pilot(seeds=self.pilot_seeds, estimates=known),
        )


def exact_claim(
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


def pilot_estimates(
    claims: Iterable[Claim], rows: DataFrame, digits: int = 4
) -> dict[str, tuple[float, ...]]:
    """What a pilot's `rows` say of the claims that have two or more estimates, rounded, by id."""
    found = {claim.id: tuple(round(value, digits) for value in claim.estimate(rows)) for claim in claims}
    return {identity: estimates for identity, estimates in found.items() if len(estimates) > 1}
