"""Quantities of the study: one number per seed of what is simulated."""

from pandas import Series

from trialogue.ledger import Replication, Rows

draws = Replication("draw", "seeds")


@draws
def share(rows: Rows, instance: str, chain: str) -> "Series[float]":
    """Share of the runs of a sampler that visit R_1 in time, on one instance."""
    return rows.where("simulated", instance=instance, chain=chain).set_index("seed").reached


@draws
def off_exact(rows: Rows) -> "Series[float]":
    """Simulated shares less the exact probabilities, mean over instances and samplers."""
    table = rows["simulated"]
    return (table.reached - table.exact).groupby(table.seed).mean()
