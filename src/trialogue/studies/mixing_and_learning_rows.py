"""What the claims, tables and figures of the study `mixing-and-learning` read from its rows."""

from collections.abc import Iterable

from pandas import DataFrame, Series

WEIGHTED = "weighted blocks"
ADAPTIVE = "adaptive blocks"


def size_label(size: int) -> str:
    """How rows call k uniformly random masked sites."""
    return f"k = {size}"


def bounds(rows: DataFrame, laws: Iterable[str] | None = None, *, coupled: bool = True) -> DataFrame:
    """Rows about the bound under some mask laws, or under all; with couplings, or else only without."""
    chosen = rows[(rows.kind == "bound") & ((rows.coupling > 0) == coupled)]
    return chosen if laws is None else chosen[chosen.law.isin(list(laws))]


def sizes(rows: DataFrame) -> list[str]:
    """The laws that mask k uniformly random sites, by increasing k."""
    return [law for law in laws(rows) if law not in (WEIGHTED, ADAPTIVE)]


def laws(rows: DataFrame) -> list[str]:
    """All mask laws in the order in which they were measured."""
    return list(rows[rows.kind == "bound"].law.unique())


def cost_of_likelihood(rows: DataFrame, coupling: float) -> "Series[float]":
    """Log of Tr I^-1, the mean over models, by set of models: masking all N sites is maximum likelihood."""
    own = bounds(rows, sizes(rows)[-1:], coupled=coupling > 0)
    return own[own.coupling == coupling].set_index("seed").log_trace.astype(float)


def steps(rows: DataFrame, coupled: bool = True) -> DataFrame:
    """Rows about masking one site more; of Ising models with couplings and of other families, or of product laws."""
    chosen = rows[rows.kind == "more"]
    return chosen[(chosen.coupling != 0) == coupled]


def couplings(rows: DataFrame, coupled: bool = True) -> list[float]:
    """The deviations of the couplings that were measured, without zero if `coupled`."""
    found = rows[rows.kind == "bound"].coupling.unique().tolist()
    return sorted(one for one in found if one > 0 or not coupled)
