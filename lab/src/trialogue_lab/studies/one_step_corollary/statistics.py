"""Statistics of the study. Each returns one number per seed of the simulations."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.parallel_gap.config import GIBBS

draws = Replication("draw", "seeds")


@draws
def share(rows: Rows, instance: str, chain: str) -> "Series[float]":
    """Return the share of simulated runs that turn all spins of a clique up.

    The sampler runs on an Ising model in which the spins of the clique are coupled, for a limited number of steps.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        instance: Label of the instance of Corollary 4.1.1, which consists of an Ising model and numbers of steps.
        chain: Name of the sampler. "k-Gibbs" resamples k random spins jointly, once. "independent parallel" resamples
            all spins independently, M times.

    Returns:
        One share per seed of the simulations.
    """
    return rows.where("simulated", instance=instance, chain=chain).set_index("seed").reached


@draws
def largest_error(rows: Rows) -> "Series[float]":
    """Return the largest absolute difference between a simulated and an exact probability.

    The probability is that resampling k random spins jointly, once, turns all spins of a clique up. The maximum is over
    Ising models with different cliques (the instances of Corollary 4.1.1).

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        One maximum per seed of the simulations.
    """
    table = rows.where("simulated", chain=GIBBS)
    return (table.reached - table.exact).abs().groupby(table.seed).max()
