"""Quantities of the study: exact ones of cold chains, and one number per seed of what is drawn."""

import math

from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")
texts = Replication("draw", "seeds", objects="the random models of the run")


@exact
def cold_change(rows: Rows) -> float:
    """Largest change of P(no wall) of the longest chains between the two lowest temperatures."""
    table = rows["cold"]
    longest = table[table.length == table.length.max()]
    names = ["family", "patterns", "window", "penalty"]
    by_cold = longest.pivot(index=names, columns="cold", values="no_wall").sort_index(axis=1)
    return float((by_cold.iloc[:, -1] - by_cold.iloc[:, -2]).abs().max())


@exact
def cold_error(rows: Rows) -> float:
    """Largest distance of P(no wall) at the lowest temperature from the share of free sequences without a wall."""
    table = rows["cold"].dropna(subset="limit")
    coldest = table[table.cold == table.cold.max()]
    return float((coldest.no_wall - coldest.limit).abs().max())


@texts
def decay_ratio(rows: Rows) -> "Series[float]":
    """Measured over exact rate at which texts leave their pattern, mean over random models."""
    table = rows["survival"]
    return (table.measured / table.rate).groupby(table.seed).mean()


@draws
def order_of_colours(
    rows: Rows, most: int, least: int = 2, above_critical: bool = False, hottest: float = math.inf
) -> "Series[float]":
    """The smallest order up to E_min / log 3 with `least` to `most` colours; or the largest beyond their own T_c.

    Temperatures above `hottest` are left out.
    """
    table = rows["colours"].query(f"{least} <= colours <= {most} and temperature <= peierls")
    table = table[table.temperature <= hottest]
    if above_critical:
        return table[table.temperature > table.critical].groupby("seed").order.max()
    return table.groupby("seed").order.min()


@draws
def order_at(rows: Rows, colours: int, temperature: float) -> "Series[float]":
    """Order with so many colours at a temperature."""
    return rows.where("colours", colours=colours, temperature=temperature).set_index("seed").order
