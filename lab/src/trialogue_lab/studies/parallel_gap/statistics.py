"""Statistics of the study about the gap between k-Gibbs and independent parallel updates of an Ising model.

k-Gibbs resamples k random spins jointly, and independent parallel updates resample all spins independently. R_1 is the
set of states in which all spins of the clique point up. Corollary 4.1.1 states that with probability 1 - delta, k-Gibbs
reaches R_1 in one step and independent parallel updates do not reach it in M steps.
"""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL

draws = Replication("draw", "seeds")
trainings = Replication("training", "training_seeds")


def networks(rows: Rows, chain: str) -> DataFrame:
    """Return the measurements of the networks that were trained to imitate single steps of a sampler.

    Args:
        rows: Measured rows of a run, by kind.
        chain: Name of the imitated sampler, "k-Gibbs" or "independent parallel".
    """
    return rows.where("network", chain=chain)


@draws
def both_events(rows: Rows) -> "Series[float]":
    """Return how far the probability of Corollary 4.1.1 is above its lower bound 1 - delta.

    The probability is that one step of k-Gibbs turns all spins of the clique up, and M independent parallel updates do
    not. Both events are simulated separately and taken as independent.

    Returns:
        One minimum over instances per seed.
    """
    shares = rows["simulated"].pivot(index=["instance", "delta", "seed"], columns="chain", values="reached")
    both = shares[GIBBS] * (1 - shares[PARALLEL])
    return (both - (1 - both.index.get_level_values("delta"))).groupby("seed").min()


@draws
def leaves(rows: Rows) -> Counts:
    """Count the simulated runs in which independent parallel updates turn all spins of the clique up within M steps.

    Returns:
        Runs with this event and all runs per seed, for the instance with the most events.
    """
    reached = rows.where("simulated", chain=PARALLEL).groupby("seed").reached.max()
    return counts_from_shares(reached, rows.config["runs"], identical=True)


@draws
def hits(rows: Rows) -> "Series[float]":
    """Return how far the probability of Proposition 4.1.4 is above its lower bound 1 - delta.

    The probability is that k-Gibbs turns all spins of the clique up within T steps.

    Returns:
        One minimum over instances per seed.
    """
    table = rows["simulated hitting"]
    return (table.reached - (1 - table.delta)).groupby(table.seed).min()


@draws
def simulation_error(rows: Rows) -> "Series[float]":
    """Return the mean difference between simulated and exact probabilities, over instances.

    Returns:
        One mean per seed.
    """
    table = pd.concat([rows["simulated"], rows["simulated hitting"]])
    return (table.reached - table.exact).groupby(table.seed).mean()


@trainings
def network(
    rows: Rows, chain: str, number: str, sites: int | None = None, how: str = "max"
) -> "Series[float]":
    """Return a number about networks that imitate single steps of a sampler.

    Args:
        rows: Measured rows of a run, by kind.
        chain: Name of the imitated sampler, "k-Gibbs" or "independent parallel".
        number: Column, or expression of columns as in `DataFrame.eval`, for example "divergence - best_divergence".
        sites: Number of spins. By default numbers are aggregated over all sizes.
        how: Aggregation over sizes, "max" (default), "min" or another name that pandas accepts.

    Returns:
        One number per training seed.
    """
    table = networks(rows, chain)
    table = table if sites is None else table[table.sites == sites]
    numbers = np.asarray(table.eval(number, engine="python"), dtype=np.float64)
    return table.assign(number=numbers).groupby("seed").number.agg(how)


@trainings
def long_run_variation(rows: Rows) -> "Series[float]":
    """Return the total variation distance between the Ising model and the limit of repeated steps of a network.

    The network imitates k-Gibbs on the largest clique.

    Returns:
        One distance per training seed.
    """
    table = networks(rows, GIBBS)
    return table[table.sites == table.sites.max()].groupby("seed").limit_variation.max()
