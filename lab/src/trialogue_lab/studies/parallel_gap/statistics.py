"""Statistics of the study about the gap between k-Gibbs and independent parallel updates of an Ising model.

k-Gibbs resamples k random spins jointly, and independent parallel updates resample all spins independently. R_1 is the
set of states in which all spins of a clique (a set of coupled spins) point up. Corollary 4.1.1 states that with
probability 1 - delta, k-Gibbs reaches R_1 in one step and independent parallel updates do not reach it in M steps.
"""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL

draws = Replication("draw", "seeds")
trainings = Replication("training", "training_seeds")


def select_networks(rows: Rows, chain: str) -> DataFrame:
    """Select the measurements of networks that are trained to imitate single steps of a sampler.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        chain: Name of the imitated sampler of an Ising model. "k-Gibbs" resamples k random spins jointly, and
            "independent parallel" resamples all spins independently.

    Returns:
        One row per training seed and number of spins.
    """
    return rows.where("network", chain=chain)


@draws
def both_events(rows: Rows) -> "Series[float]":
    """Return the smallest difference between a simulated probability and its lower bound 1 - delta.

    The probability is that one step of k-Gibbs turns all coupled spins of an Ising model up, and that M independent
    parallel updates do not. A step of k-Gibbs resamples k random spins jointly. Corollary 4.1.1 gives the bound.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The minimum of (probability - bound) over instances of the corollary, per seed of the simulations.
    """
    shares = rows["simulated"].pivot(index=["instance", "delta", "seed"], columns="chain", values="reached")
    both = shares[GIBBS] * (1 - shares[PARALLEL])
    return (both - (1 - both.index.get_level_values("delta"))).groupby("seed").min()


@draws
def leaves(rows: Rows) -> Counts:
    """Count the simulations in which independent parallel updates turn all coupled spins of an Ising model up.

    An update resamples all spins at once, independently of each other. The number of updates is given by Corollary
    4.1.1.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The number of such runs and the number of all runs per seed, for the instance of the corollary with the most
        such runs.
    """
    reached = rows.where("simulated", chain=PARALLEL).groupby("seed").reached.max()
    return counts_from_shares(reached, rows.config["runs"], identical=True)


@draws
def hits(rows: Rows) -> "Series[float]":
    """Return the smallest difference between a simulated probability and its lower bound 1 - delta.

    The probability is that k-Gibbs turns all coupled spins of an Ising model up within a given number of steps. A step
    of k-Gibbs resamples k random spins jointly. Proposition 4.1.4 gives the number of steps and the bound.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The minimum of (probability - bound) over Ising models and values of delta, per seed of the simulations.
    """
    table = rows["simulated hitting"]
    return (table.reached - (1 - table.delta)).groupby(table.seed).min()


@draws
def simulation_error(rows: Rows) -> "Series[float]":
    """Return the difference between simulated and exact probabilities of success, as a mean over models and samplers.

    Success means that a sampler turns all coupled spins of an Ising model up within a given number of steps.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean per seed of the simulations.
    """
    table = pd.concat([rows["simulated"], rows["simulated hitting"]])
    return (table.reached - table.exact).groupby(table.seed).mean()


@trainings
def network(
    rows: Rows, chain: str, number: str, sites: int | None = None, how: str = "max"
) -> "Series[float]":
    """Return a measurement of a network that imitates single steps of a sampler.

    The sampler runs on an Ising model in which all spins are coupled.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        chain: Name of the imitated sampler of an Ising model. "k-Gibbs" resamples k random spins jointly, and
            "independent parallel" resamples all spins independently.
        number: Column, or expression of columns as in `DataFrame.eval`. For example, "divergence - best_divergence" is
            the KL divergence from the sampler to the network minus the smallest divergence to any distribution of
            independent spins.
        sites: Number of spins. By default, values are aggregated over all numbers.
        how: Aggregation over numbers of spins: "max" (default), "min" or another name that pandas accepts.

    Returns:
        One value per training seed.
    """
    table = select_networks(rows, chain)
    table = table if sites is None else table[table.sites == sites]
    numbers = np.asarray(table.eval(number, engine="python"), dtype=np.float64)
    return table.assign(number=numbers).groupby("seed").number.agg(how)


@trainings
def long_run_variation(rows: Rows) -> "Series[float]":
    """Return the distance between an Ising model and what a trained network samples in the long run.

    The network is trained to imitate one step of a sampler of the model, which resamples all spins jointly. Its steps
    are then repeated until the distribution no longer changes. The distance is the total variation, for the largest
    measured number of spins.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One distance per training seed.
    """
    table = select_networks(rows, GIBBS)
    return table[table.sites == table.sites.max()].groupby("seed").limit_variation.max()
