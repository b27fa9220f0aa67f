"""Statistics of the study. Each returns one number per seed of the simulations."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.parallel_gap.config import GIBBS

draws = Replication("draw", "seeds")


@draws
def share(rows: Rows, instance: str, chain: str) -> "Series[float]":
    """Return the share of the runs of a sampler that visit R_1 in time, on one instance."""
    return rows.where("simulated", instance=instance, chain=chain).set_index("seed").reached


@draws
def largest_error(rows: Rows) -> "Series[float]":
    """Return the largest difference over instances between a simulated share of k-Gibbs and its exact probability."""
    table = rows.where("simulated", chain=GIBBS)
    return (table.reached - table.exact).abs().groupby(table.seed).max()
