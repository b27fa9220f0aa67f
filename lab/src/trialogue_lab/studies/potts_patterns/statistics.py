"""Statistics of the study about stored patterns in Potts chains at low temperature, in random models, and in the plane.

A domain wall is a place where a sequence changes from one stored pattern to another.
"""

import math

from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")
texts = Replication("draw", "seeds", objects="the random models of the run")


@exact
def cold_change(rows: Rows) -> float:
    """Return the largest change of the probability of no domain wall between the two lowest temperatures.

    The sequences come from Potts chains, whose energy is a sum over windows of successive tokens. A domain wall is a
    position where a sequence changes from one stored pattern to another. The maximum is taken over chains with the
    largest measured sequence length.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        The largest absolute change.
    """
    table = rows["cold"]
    longest = table[table.length == table.length.max()]
    names = ["family", "patterns", "window", "penalty"]
    by_cold = longest.pivot(index=names, columns="cold", values="no_wall").sort_index(axis=1)
    return float((by_cold.iloc[:, -1] - by_cold.iloc[:, -2]).abs().max())


@exact
def cold_error(rows: Rows) -> float:
    """Return how far the probability of no domain wall at the lowest temperature is from its limit.

    The sequences come from Potts chains, whose energy is a sum over windows of successive tokens. A domain wall is a
    position where a sequence changes from one stored pattern to another. The limit for temperature zero is the share of
    sequences without a wall among all sequences of minimum energy.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        The largest absolute difference, over short chains.
    """
    table = rows["cold"].dropna(subset="limit")
    coldest = table[table.cold == table.cold.max()]
    return float((coldest.no_wall - coldest.limit).abs().max())


@texts
def decay_ratio(rows: Rows) -> "Series[float]":
    """Return the measured rate at which generated text stops following a pattern, divided by the exact rate.

    The text is sampled from a random model. The pattern is the sequence that greedy decoding of this model repeats
    forever.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        One mean ratio over random models, per seed of the texts.
    """
    table = rows["survival"]
    return (table.measured / table.rate).groupby(table.seed).mean()


@draws
def order_of_colours(
    rows: Rows, most: int, least: int = 2, above_critical: bool = False, hottest: float = math.inf
) -> "Series[float]":
    """Return the smallest order parameter of Potts models on a torus.

    All sites start in the same pattern. The order parameter is 1 if all sites still have this pattern, and 0 if as many
    have it as by chance. Only temperatures for which Peierls' argument is stated are used, that is, up to 1 / log 3 in
    units of the energy of a domain wall.

    Args:
        rows: Measured rows of a run, by kind.
        most: Largest number of patterns (colors).
        least: Smallest number of patterns (default: 2).
        above_critical: Whether to return the largest order parameter above the critical temperature instead (default:
            False).
        hottest: Highest temperature (default: no limit).

    Returns:
        One minimum or maximum over models and temperatures, per seed.
    """
    table = rows["colours"].query(f"{least} <= colours <= {most} and temperature <= peierls")
    table = table[table.temperature <= hottest]
    if above_critical:
        return table[table.temperature > table.critical].groupby("seed").order.max()
    return table.groupby("seed").order.min()


@draws
def order_at(rows: Rows, colours: int, temperature: float) -> "Series[float]":
    """Return the order parameter of a Potts model on a torus at one temperature.

    All sites start in the same pattern. The order parameter is 1 if all sites still have this pattern, and 0 if as many
    have it as by chance.

    Args:
        rows: Measured rows of a run, by kind.
        colours: Number of patterns (colors).
        temperature: Temperature, in units of the energy of a domain wall.

    Returns:
        One order parameter per seed.
    """
    return rows.where("colours", colours=colours, temperature=temperature).set_index("seed").order
