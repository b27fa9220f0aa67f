"""Statistics of the study: exact numbers for chains, and one number per seed for simulations."""

import math

from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")
texts = Replication("draw", "seeds", objects="the random models of the run")


@exact
def cold_change(rows: Rows) -> float:
    """Return the largest change of P(no wall) between the two lowest temperatures, for the longest chains."""
    table = rows["cold"]
    longest = table[table.length == table.length.max()]
    names = ["family", "patterns", "window", "penalty"]
    by_cold = longest.pivot(index=names, columns="cold", values="no_wall").sort_index(axis=1)
    return float((by_cold.iloc[:, -1] - by_cold.iloc[:, -2]).abs().max())


@exact
def cold_error(rows: Rows) -> float:
    """Return the largest distance of P(no wall) at the lowest temperature from its limit."""
    table = rows["cold"].dropna(subset="limit")
    coldest = table[table.cold == table.cold.max()]
    return float((coldest.no_wall - coldest.limit).abs().max())


@texts
def decay_ratio(rows: Rows) -> "Series[float]":
    """Return the ratio of measured to exact rate of leaving a pattern, as a mean over random models."""
    table = rows["survival"]
    return (table.measured / table.rate).groupby(table.seed).mean()


@draws
def order_of_colours(
    rows: Rows, most: int, least: int = 2, above_critical: bool = False, hottest: float = math.inf
) -> "Series[float]":
    """Return the smallest order at temperatures up to E_min / log 3.

    Args:
        rows: The rows of a result.
        most: Largest number of patterns.
        least: Smallest number of patterns (default: 2).
        above_critical: Return the largest order above the critical temperature instead (default: False).
        hottest: Highest temperature (default: no limit).
    """
    table = rows["colours"].query(f"{least} <= colours <= {most} and temperature <= peierls")
    table = table[table.temperature <= hottest]
    if above_critical:
        return table[table.temperature > table.critical].groupby("seed").order.max()
    return table.groupby("seed").order.min()


@draws
def order_at(rows: Rows, colours: int, temperature: float) -> "Series[float]":
    """Return the order with a number of patterns at a temperature."""
    return rows.where("colours", colours=colours, temperature=temperature).set_index("seed").order
