"""Statistics of the study: one number per set of models, and worst cases over all models."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, size_label

sets = Replication("prompt set", "seeds")

EVERY, MASKED, FEW, MANY = "every law", "every k", "k < N - 2", "k >= N - 2"


def mask_distributions(rows: Rows, which: str = EVERY) -> list[str]:
    """Return the names of a group of mask distributions, or the given name, in the order of measurement."""
    names = rows["bound"].law.unique().tolist()
    sizes = [name for name in names if name not in (WEIGHTED, ADAPTIVE)]
    groups = {EVERY: names, MASKED: sizes, "k > 1": sizes[1:], FEW: sizes[:-3], MANY: sizes[-3:]}
    return groups.get(which, [which])


def bounds(rows: Rows, which: str = EVERY, coupling: float | None = None) -> DataFrame:
    """Return the rows about the bound.

    Args:
        rows: The rows of the result.
        which: Group or name of the mask distributions.
        coupling: Standard deviation of the couplings. None for all except zero.
    """
    table = rows["bound"]
    table = table[table.coupling > 0] if coupling is None else table[table.coupling == coupling]
    return table[table.law.isin(mask_distributions(rows, which))]


@sets
def typical(rows: Rows, column: str, which: str, coupling: float | None = None) -> "Series[float]":
    """Return the mean of a column over models. For a column of logarithms, return the geometric mean."""
    means = bounds(rows, which, coupling).groupby("seed")[column].mean()
    return np.exp(means) if column.startswith("log_") else means


@sets
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return the increase of a column of logarithms from the weakest to the strongest couplings, for k = 1."""
    table = bounds(rows, size_label(1)).pivot(index="seed", columns="coupling", values=column)
    if len(table.columns) < 2:
        raise NoRows("growth needs couplings with two standard deviations")
    return table.iloc[:, -1] - table.iloc[:, 0]


@exact
def least(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the minimum of a column over all models."""
    return float(bounds(rows, which, coupling)[column].min())


@exact
def most(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the maximum of a column over all models."""
    return float(bounds(rows, which, coupling)[column].max())


@exact
def best_gain(rows: Rows) -> float:
    """Return the smallest eigenvalue of the gain from one more masked site, for the best model and the worst k."""
    coupled = rows.where("more", family="Ising").query("coupling != 0")
    return float(coupled.groupby("masked").smallest_most.max().min())
