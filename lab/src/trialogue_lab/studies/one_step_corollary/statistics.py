"""Statistics of the study. Each returns one number per seed of the simulations."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.parallel_gap.config import GIBBS

draws = Replication("draw", "seeds")


@draws
def share(rows: Rows, instance: str, chain: str) -> "Series[float]":
    """Return the share of simulated runs in which a sampler turns all spins of a clique up.

    The model is an Ising model with a clique of coupled spins, and the number of steps is limited.

    Args:
        rows: Measured rows of a run, by kind.
        instance: Label of the instance of Corollary 4.1.1, which is an Ising model with numbers of steps.
        chain: Name of the sampler. "k-Gibbs" resamples k random spins jointly, once. "independent parallel" updates all
            spins independently, M times.

    Returns:
        One share per seed of the simulations.
    """
    return rows.where("simulated", instance=instance, chain=chain).set_index("seed").reached


@draws
def largest_error(rows: Rows) -> "Series[float]":
    """Return the largest absolute difference between a simulated and an exact probability.

    The probability is that one step of k-Gibbs, which resamples k random spins jointly, turns all spins of a clique up.
    The maximum is taken over instances of Corollary 4.1.1, which are Ising models with different cliques.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        One maximum per seed of the simulations.
    """
    table = rows.where("simulated", chain=GIBBS)
    return (table.reached - table.exact).abs().groupby(table.seed).max()
