"""Statistics of the study: one number per seed of a simulation, or per training of a network."""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL

draws = Replication("draw", "seeds")
trainings = Replication("training", "training_seeds")


def networks(rows: Rows, chain: str) -> DataFrame:
    """Return the rows of the networks that imitate a chain."""
    return rows.where("network", chain=chain)


@draws
def both_events(rows: Rows) -> "Series[float]":
    """Return the share of runs with both events minus 1 - delta, the smallest over instances.

    The two events are simulated separately and taken as independent.
    """
    shares = rows["simulated"].pivot(index=["instance", "delta", "seed"], columns="chain", values="reached")
    both = shares[GIBBS] * (1 - shares[PARALLEL])
    return (both - (1 - both.index.get_level_values("delta"))).groupby("seed").min()


@draws
def leaves(rows: Rows) -> Counts:
    """Count the runs of independent parallel updates that visit R_1 within M steps, in the worst instance."""
    reached = rows.where("simulated", chain=PARALLEL).groupby("seed").reached.max()
    return counts_from_shares(reached, rows.config["runs"], identical=True)


@draws
def hits(rows: Rows) -> "Series[float]":
    """Return the share of k-Gibbs runs that visit R_1 within T steps minus 1 - delta, the smallest over instances."""
    table = rows["simulated hitting"]
    return (table.reached - (1 - table.delta)).groupby(table.seed).min()


@draws
def simulation_error(rows: Rows) -> "Series[float]":
    """Return the simulated shares minus the exact probabilities, as the mean over instances."""
    table = pd.concat([rows["simulated"], rows["simulated hitting"]])
    return (table.reached - table.exact).groupby(table.seed).mean()


@trainings
def network(
    rows: Rows, chain: str, number: str, sites: int | None = None, how: str = "max"
) -> "Series[float]":
    """Return a number of the networks that imitate a chain.

    Args:
        rows: Rows of a result.
        chain: Name of the imitated chain.
        number: A column, or an expression of columns as in `DataFrame.eval`.
        sites: Size of the clique. By default numbers are aggregated over all sizes.
        how: Aggregation over sizes, such as "max" or "min".
    """
    table = networks(rows, chain)
    table = table if sites is None else table[table.sites == sites]
    numbers = np.asarray(table.eval(number, engine="python"), dtype=np.float64)
    return table.assign(number=numbers).groupby("seed").number.agg(how)


@trainings
def long_run_variation(rows: Rows) -> "Series[float]":
    """Return the TV between the model and the limit of repeated network steps, for k-Gibbs on the largest clique."""
    table = networks(rows, GIBBS)
    return table[table.sites == table.sites.max()].groupby("seed").limit_variation.max()
