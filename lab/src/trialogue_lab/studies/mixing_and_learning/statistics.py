"""Quantities of the study: one number per set of models, and the worst cases over all models."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, size_label

sets = Replication("prompt set", "seeds")

EVERY, MASKED, FEW, MANY = "every law", "every k", "k < N - 2", "k >= N - 2"


def laws(rows: Rows, which: str = EVERY) -> list[str]:
    """Mask laws in the order in which they were measured: a group of them, or the one of that name."""
    names = rows["bound"].law.unique().tolist()
    sizes = [name for name in names if name not in (WEIGHTED, ADAPTIVE)]
    groups = {EVERY: names, MASKED: sizes, "k > 1": sizes[1:], FEW: sizes[:-3], MANY: sizes[-3:]}
    return groups.get(which, [which])


def couplings(rows: Rows) -> list[float]:
    """The deviations of the couplings that were measured, without zero."""
    return sorted(rows["bound"].query("coupling > 0").coupling.unique().tolist())


def bounds(rows: Rows, which: str = EVERY, coupling: float | None = None) -> DataFrame:
    """Rows about the bound under some mask laws, at one deviation of the couplings or at all but zero."""
    table = rows["bound"]
    table = table[table.coupling > 0] if coupling is None else table[table.coupling == coupling]
    return table[table.law.isin(laws(rows, which))]


@sets
def typical(rows: Rows, column: str, which: str, coupling: float | None = None) -> "Series[float]":
    """Mean over models of a column about the bound; of columns that hold logarithms, geometric."""
    table = bounds(rows, which, coupling)
    means = table.groupby("seed")[column].mean()
    return np.exp(means) if column.startswith("log_") else means


@sets
def growth(rows: Rows, column: str) -> "Series[float]":
    """How much a logarithm grows from the weakest to the strongest couplings, one site masked, mean over models."""
    scales = couplings(rows)
    if len(scales) < 2:
        raise NoRows("one deviation of the couplings is no growth")
    by_coupling = bounds(rows, size_label(1)).pivot(index="seed", columns="coupling", values=column)
    return by_coupling[scales[-1]] - by_coupling[scales[0]]


@exact
def least(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """The smallest over all models of a column about the bound."""
    return float(bounds(rows, which, coupling)[column].min())


@exact
def most(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """The largest over all models of it."""
    return float(bounds(rows, which, coupling)[column].max())


@exact
def best_gain(rows: Rows) -> float:
    """Smallest eigenvalue of what masking one site more gains, the largest over Ising models, at the worst k."""
    coupled = rows.where("more", family="Ising").query("coupling != 0")
    return float(coupled.groupby("masked").smallest_most.max().min())
