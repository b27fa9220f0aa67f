"""Largest and smallest values of columns of the measurements, as statistics for claims.

Example: `largest("length", "free_energy - free_energy_bound", where="patterns > 1") < 0`.
"""

import numpy as np
from numpy.typing import NDArray

from trialogue_lab.ledger.claims.statistics import exact
from trialogue_lab.ledger.rows import NoRows, Rows

RESOLVED = 1e-12
"""Smallest value that cannot be a rounding error. Compare nonnegative numbers with it instead of with 0."""


@exact
def largest(rows: Rows, kind: str, *numbers: str, where: str = "") -> float:
    """Create a statistic: the largest value in some columns of the measurements.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Which DataFrame to use.
        *numbers: Column names, or expressions for `DataFrame.eval`.
        where: Condition on the rows, for `DataFrame.query`. Empty for all rows (default).

    Raises:
        NoRows: No row meets the condition.

    Example:
        `largest(rows, "length", "free_energy - free_energy_bound", where="patterns > 1")`
    """
    return float(_evaluate_columns(rows, kind, numbers, where).max())


@exact
def smallest(rows: Rows, kind: str, *numbers: str, where: str = "") -> float:
    """Create a statistic: the smallest value in some columns of the measurements.

    The arguments are those of `largest`.
    """
    return float(_evaluate_columns(rows, kind, numbers, where).min())


def _evaluate_columns(rows: Rows, kind: str, numbers: tuple[str, ...], where: str) -> NDArray[np.float64]:
    table = rows[kind]
    chosen = table.query(where, engine="python") if where else table
    if chosen.empty:
        raise NoRows(f"no rows of the kind {kind!r} where {where}")
    columns = [chosen[each] if each in chosen else chosen.eval(each, engine="python") for each in numbers]
    return np.array(columns, dtype=np.float64)
