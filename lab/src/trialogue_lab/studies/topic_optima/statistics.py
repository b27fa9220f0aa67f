"""Quantities of the study: all but the worst cases, which are extremes of columns."""

import numpy as np

from trialogue_lab.ledger import NoRows, Rows, exact


@exact
def least_growth(rows: Rows, edge: str, values: str) -> float:
    """The least growth of the logarithm of a region's edge from one number of topics in a document to the next."""
    table = rows.where("region", values=values, variant="printed").sort_values("tau")
    if len(table) < 2:
        raise NoRows("one landscape has no next")
    return float(np.diff(np.log(table[edge])).min())


@exact
def minimum(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """A number of the least loss where T is the square of tau."""
    return _one(rows, "minimum", column, tau=tau, values=values, variant=variant)


@exact
def region(rows: Rows, column: str, tau: int, values: str = "block") -> float:
    """A number of a landscape's low region."""
    return _one(rows, "region", column, tau=tau, values=values, variant="printed")


@exact
def landscape(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """A number of a landscape's least loss."""
    return _one(rows, "landscape-minimum", column, tau=tau, values=values, variant=variant)


@exact
def at_length(rows: Rows, column: str, length: int = 150, law: str = "Dirichlet") -> float:
    """A number of the optimum that documents of a length have."""
    return _one(rows, "length", column, law=law, length=length)


def _one(rows: Rows, kind: str, column: str, **values: object) -> float:
    table = rows.where(kind, **values)
    if table.empty:
        raise NoRows(f"no rows of the kind {kind!r} with {values}")
    return float(table[column].iloc[0])
