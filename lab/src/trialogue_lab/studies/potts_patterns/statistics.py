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
    """Return the change of the probability of no domain wall at the two lowest temperatures.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another. The
    maximum is over the chains, at the largest measured sequence length.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

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
    """Return how far the probability of no domain wall is from its zero-temperature limit.

    It is computed at the lowest measured temperature. A domain wall is a position where a sequence of a Potts chain
    changes from one stored pattern to another. The limit at temperature zero is the share of minimum-energy sequences
    that have no wall.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        The largest absolute difference, over chains with short sequences.
    """
    table = rows["cold"].dropna(subset="limit")
    coldest = table[table.cold == table.cold.max()]
    return float((coldest.no_wall - coldest.limit).abs().max())


@texts
def decay_ratio(rows: Rows) -> "Series[float]":
    """Return the ratio of the measured and exact rates at which text leaves a pattern.

    The text is sampled from a random model. The pattern is the sequence that greedy decoding of this model repeats
    forever.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        One mean ratio over random models, per seed of the texts.
    """
    table = rows["survival"]
    return (table.measured / table.rate).groupby(table.seed).mean()


@draws
def order_of_colours(
    rows: Rows, most: int, least: int = 2, above_critical: bool = False, hottest: float = math.inf
) -> "Series[float]":
    """Return the smallest order parameter of Potts models on a square lattice.

    All sites start in the same state. The order parameter is 1 if all sites still have this state, and 0 if as many
    have it as by chance. Only temperatures for which Peierls' argument is stated are used: at most 1 / log 3 times the
    energy between two different neighbors.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        most: Largest number of states (colors).
        least: Smallest number of states (default: 2).
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
    """Return the order parameter of a Potts model on a square lattice at one temperature.

    All sites start in the same state. The order parameter is 1 if all sites still have this state, and 0 if as many
    have it as by chance.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        colours: Number of states (colors).
        temperature: Temperature, in units of the energy between two different neighbors.

    Returns:
        One order parameter per seed.
    """
    return rows.where("colours", colours=colours, temperature=temperature).set_index("seed").order
