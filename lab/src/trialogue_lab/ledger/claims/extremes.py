"""Extremes: the worst case of what was computed exactly, over the rows of a kind.

largest("length", "free_energy - free_energy_bound", where="patterns > 1") < 0
"""

import numpy as np
from numpy.typing import NDArray

from trialogue_lab.ledger.claims.statistics import exact
from trialogue_lab.ledger.rows import NoRows, Rows

RESOLVED = 1e-12
"""A computed rate or distance below this may be rounding: what is never negative is not told from zero by its sign."""


@exact
def largest(rows: Rows, kind: str, *numbers: str, where: str = "") -> float:
    """The largest of some `numbers`: columns, or expressions of columns as `DataFrame.eval` reads them.

    `where` is a condition as `DataFrame.query` reads it.
    """
    return float(_numbers(rows, kind, numbers, where).max())


@exact
def smallest(rows: Rows, kind: str, *numbers: str, where: str = "") -> float:
    """The smallest of some `numbers`, as for `largest`."""
    return float(_numbers(rows, kind, numbers, where).min())


def _numbers(rows: Rows, kind: str, numbers: tuple[str, ...], where: str) -> NDArray[np.float64]:
    table = rows[kind]
    chosen = table.query(where, engine="python") if where else table
    if chosen.empty:
        raise NoRows(f"no rows of the kind {kind!r} where {where}")
    columns = [chosen[each] if each in chosen else chosen.eval(each, engine="python") for each in numbers]
    return np.array(columns, dtype=np.float64)
