"""Statistics of the study about stored patterns: at low temperature, in texts of random models, and on a lattice.

A domain wall is a position where a sequence changes from one stored pattern to another.
"""

import math

from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")
texts = Replication("draw", "seeds", objects="the random models of the run")


@exact
def cold_change(rows: Rows) -> float:
    """Return the largest change of the probability that a sequence follows one pattern, at the lowest temperatures.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another. The
    probability of no wall is compared between the two lowest measured temperatures, for the longest measured sequences.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The largest absolute change over all chains.
    """
    table = rows["cold"]
    longest = table[table.length == table.length.max()]
    names = ["family", "patterns", "window", "penalty"]
    by_cold = longest.pivot(index=names, columns="cold", values="no_wall").sort_index(axis=1)
    return float((by_cold.iloc[:, -1] - by_cold.iloc[:, -2]).abs().max())


@exact
def cold_error(rows: Rows) -> float:
    """Return the largest error of the zero-temperature limit of the probability that a sequence follows one pattern.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another. The
    probability of no wall is computed at the lowest measured temperature. Its limit is the share of minimum-energy
    sequences without a wall.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The largest absolute difference over all chains, for sequences of eight tokens.
    """
    table = rows["cold"].dropna(subset="limit")
    coldest = table[table.cold == table.cold.max()]
    return float((coldest.no_wall - coldest.limit).abs().max())


@texts
def decay_ratio(rows: Rows) -> "Series[float]":
    """Return the rate at which random text stops following a pattern, as a ratio (measured / exact).

    The text is sampled from a language model with random next-token distributions. The pattern is the periodic sequence
    that greedy decoding of this model generates. For n tokens, the share of texts that still follow it falls like
    exp(-rate n).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One ratio per seed of the texts: the mean over all random models.
    """
    table = rows["survival"]
    return (table.measured / table.rate).groupby(table.seed).mean()


@draws
def order_of_colours(
    rows: Rows, most: int, least: int = 2, above_critical: bool = False, hottest: float = math.inf
) -> "Series[float]":
    """Return the smallest or largest order parameter of Potts models on a square lattice, over several temperatures.

    All sites start in the same state. The order parameter is 1 if all sites still have this state, and 0 if
    only the share expected by chance has it. Only temperatures are used for which theory guarantees order.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        most: Largest number of states (colors).
        least: Smallest number of states (default: 2).
        above_critical: Whether to return the largest order parameter above the critical temperature instead
            (default: False).
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
    """Return the order parameter of a Potts model on a square lattice at one temperature.

    All sites start in the same state. The order parameter is 1 if all sites still have this state, and 0 if only the
    share expected by chance has it.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        colours: Number of states (colors).
        temperature: Temperature, in units of the energy between two different neighbors.

    Returns:
        One order parameter per seed.
    """
    return rows.where("colours", colours=colours, temperature=temperature).set_index("seed").order
