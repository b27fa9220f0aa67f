"""Statistics of the study. Each returns one number per seed of the simulations."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.parallel_gap.config import GIBBS

draws = Replication("draw", "seeds")


@draws
def share(rows: Rows, instance: str, chain: str) -> "Series[float]":
    """Return the share of simulated runs of a sampler that turn all coupled spins of an Ising model up.

    A run makes a fixed number of steps of the sampler. The coupled spins are called a clique.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        instance: Label of the instance of Corollary 4.1.1 (an Ising model with numbers of steps).
        chain: Name of the sampler. "k-Gibbs" resamples k random spins jointly, once. "independent parallel" resamples
            all spins independently, M times.

    Returns:
        One share per seed of the simulations.
    """
    return rows.where("simulated", instance=instance, chain=chain).set_index("seed").reached


@draws
def largest_error(rows: Rows) -> "Series[float]":
    """Return the largest absolute error of the simulated probability that one sampler step turns a clique up.

    A clique is a set of coupled spins of an Ising model. The step resamples k random spins jointly.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One maximum over Ising models (the instances of Corollary 4.1.1) per seed of the simulations.
    """
    table = rows.where("simulated", chain=GIBBS)
    return (table.reached - table.exact).abs().groupby(table.seed).max()
