"""Statistics of the study. Each returns one number per seed of the simulations."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.parallel_gap.config import GIBBS

draws = Replication("draw", "seeds")


@draws
def share(rows: Rows, instance: str, chain: str) -> "Series[float]":
    """Return the share of simulated runs in which a sampler of an Ising model reaches R_1 within its number of steps.

    R_1 is the set of states in which all spins of the clique point up.

    Args:
        rows: Measured rows of a run, by kind.
        instance: Label of the instance of Corollary 4.1.1.
        chain: Name of the sampler, "k-Gibbs" (one step) or "independent parallel" (M steps).

    Returns:
        One share per seed.
    """
    return rows.where("simulated", instance=instance, chain=chain).set_index("seed").reached


@draws
def largest_error(rows: Rows) -> "Series[float]":
    """Return the largest difference between a simulated probability and its exact value, over instances.

    The probability is that one step of k-Gibbs turns all spins of the clique up.

    Returns:
        One difference per seed.
    """
    table = rows.where("simulated", chain=GIBBS)
    return (table.reached - table.exact).abs().groupby(table.seed).max()
