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

    The maximum is over the longest Potts chains. A domain wall is a change from one stored pattern to another.
    """
    table = rows["cold"]
    longest = table[table.length == table.length.max()]
    names = ["family", "patterns", "window", "penalty"]
    by_cold = longest.pivot(index=names, columns="cold", values="no_wall").sort_index(axis=1)
    return float((by_cold.iloc[:, -1] - by_cold.iloc[:, -2]).abs().max())


@exact
def cold_error(rows: Rows) -> float:
    """Return the largest distance, over short Potts chains, of the probability of no domain wall from its limit.

    The probability is computed at the lowest temperature. The limit for temperature zero is the share of minimum-energy
    sequences without a wall.
    """
    table = rows["cold"].dropna(subset="limit")
    coldest = table[table.cold == table.cold.max()]
    return float((coldest.no_wall - coldest.limit).abs().max())


@texts
def decay_ratio(rows: Rows) -> "Series[float]":
    """Return the ratio of the measured to the exact rate at which texts of a random model leave a pattern.

    The pattern is one that greedy decoding of the model repeats forever.

    Returns:
        One mean over random models per seed of the texts.
    """
    table = rows["survival"]
    return (table.measured / table.rate).groupby(table.seed).mean()


@draws
def order_of_colours(
    rows: Rows, most: int, least: int = 2, above_critical: bool = False, hottest: float = math.inf
) -> "Series[float]":
    """Return the smallest order of Potts models on a torus at temperatures for which Peierls' argument is stated.

    The order is 1 if all sites show the initial pattern, and 0 if as many do as by chance. The argument is stated for
    temperatures up to 1 / log 3, in units of the energy of a wall.

    Args:
        rows: Measured rows of a run, by kind.
        most: Largest number of patterns.
        least: Smallest number of patterns (default: 2).
        above_critical: Return the largest order above the critical temperature instead (default: False).
        hottest: Highest temperature (default: no limit).

    Returns:
        One extreme per seed.
    """
    table = rows["colours"].query(f"{least} <= colours <= {most} and temperature <= peierls")
    table = table[table.temperature <= hottest]
    if above_critical:
        return table[table.temperature > table.critical].groupby("seed").order.max()
    return table.groupby("seed").order.min()


@draws
def order_at(rows: Rows, colours: int, temperature: float) -> "Series[float]":
    """Return the order of a Potts model on a torus at one temperature.

    The order is 1 if all sites show the initial pattern, and 0 if as many do as by chance.

    Args:
        rows: Measured rows of a run, by kind.
        colours: Number of patterns.
        temperature: Temperature, in units of the energy of a wall.

    Returns:
        One order per seed.
    """
    return rows.where("colours", colours=colours, temperature=temperature).set_index("seed").order
