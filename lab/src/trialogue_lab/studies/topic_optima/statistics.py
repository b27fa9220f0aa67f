"""Statistics of the study. Largest and smallest values of columns are defined in the claims."""

import numpy as np

from trialogue_lab.ledger import NoRows, Rows, exact


@exact
def least_growth(rows: Rows, edge: str, values: str) -> float:
    """Return the smallest increase of the logarithm of a region's edge from one tau to the next."""
    table = rows.where("region", values=values, variant="printed").sort_values("tau")
    if len(table) < 2:
        raise NoRows("the growth needs landscapes for two values of tau")
    return float(np.diff(np.log(table[edge])).min())


@exact
def minimum(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """Return a column of the minimum of the loss in a model with T = tau^2 topics."""
    return _single_value(rows, "minimum", column, tau=tau, values=values, variant=variant)


@exact
def region(rows: Rows, column: str, tau: int, values: str = "block") -> float:
    """Return a column of the region of low loss of a landscape."""
    return _single_value(rows, "region", column, tau=tau, values=values, variant="printed")


@exact
def landscape(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """Return a column of the minimum of a landscape."""
    return _single_value(rows, "landscape-minimum", column, tau=tau, values=values, variant=variant)


@exact
def at_length(rows: Rows, column: str, length: int = 150, distribution: str = "Dirichlet") -> float:
    """Return a column of the optimum for documents of a given length."""
    return _single_value(rows, "length", column, law=distribution, length=length)


def _single_value(rows: Rows, kind: str, column: str, **values: object) -> float:
    table = rows.where(kind, **values)
    if table.empty:
        raise NoRows(f"no rows of the kind {kind!r} with {values}")
    return float(table[column].iloc[0])
