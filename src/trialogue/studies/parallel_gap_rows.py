"""What the claims, tables and figures of the study `parallel-gap` read from its rows."""

from pandas import DataFrame

from trialogue.studies.rows import kind

GIBBS = "k-Gibbs"
PARALLEL = "independent parallel"
STATED = "as printed"
CORRECTED = "corrected"


def networks(rows: DataFrame, chain: str = GIBBS, sites: int | None = None) -> DataFrame:
    """The trained networks that imitate a chain, on cliques of so many sites or of all sizes."""
    chosen = kind(rows, "network")
    chosen = chosen[chosen.chain == chain]
    return chosen if sites is None else chosen[chosen.sites == sites]


def network_sizes(rows: DataFrame) -> list[int]:
    """The numbers of sites of the cliques that were imitated."""
    return sorted(networks(rows).sites.astype(int).unique().tolist())
