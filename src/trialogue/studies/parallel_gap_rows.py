"""What the claims, tables and figures of the study `parallel-gap` read from its rows."""

from pandas import DataFrame, Series

GIBBS = "k-Gibbs"
PARALLEL = "independent parallel"
STATED = "as printed"
CORRECTED = "corrected"


def kind(rows: DataFrame, name: str) -> DataFrame:
    """The rows of one kind of measurement, without the columns of other kinds."""
    return rows[rows.kind == name].dropna(axis=1, how="all")


def networks(rows: DataFrame, chain: str = GIBBS, sites: int | None = None) -> DataFrame:
    """The trained networks that imitate a chain, on cliques of so many sites or of all sizes."""
    chosen = kind(rows, "network")
    chosen = chosen[chosen.chain == chain]
    return chosen if sites is None else chosen[chosen.sites == sites]


def by_seed(chosen: DataFrame, values: "Series[float]", how: str = "mean") -> "Series[float]":
    """Mean, or smallest or largest, over the rows of a seed."""
    found: Series[float] = values.groupby(chosen.seed).agg(how)
    return found


def network_sizes(rows: DataFrame) -> list[int]:
    """The numbers of sites of the cliques that were imitated."""
    return sorted(networks(rows).sites.astype(int).unique().tolist())
