"""What the claims, tables and figures of the study `ising-sampling` read from its rows."""

import math
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame, Series

PARALLEL = "independent parallel"


def block_label(size: int) -> str:
    """How rows call k-Gibbs."""
    return f"k = {size}"


def labels(rows: DataFrame) -> list[str]:
    """The chains in the order of their block sizes, independent parallel last."""
    return list(rows[rows.kind == "exact"].chain.unique())


def blocks(rows: DataFrame, least: int = 1) -> list[str]:
    """The k-Gibbs chains with k of at least `least`, by increasing k."""
    sizes = rows[(rows.kind == "exact") & (rows.block_size >= least)].block_size.astype(int).unique()
    return [block_label(size) for size in sorted(sizes.tolist())]


def smaller_blocks(rows: DataFrame) -> list[str]:
    """The k-Gibbs chains with k < N - 1, where N is the largest k."""
    sizes = rows[rows.kind == "exact"].block_size
    return [
        name for name in blocks(rows) if name not in (block_label(int(sizes.max()) - less) for less in (0, 1))
    ]


def exact(rows: DataFrame, column: str) -> DataFrame:
    """An exact number, by coupling (rows, increasing) and chain (columns)."""
    chosen = rows[rows.kind == "exact"]
    return chosen.pivot(index="coupling", columns="chain", values=column)[labels(rows)].sort_index()


def simulated(
    rows: DataFrame,
    column: str,
    chains: Sequence[str] | None = None,
    *,
    least: float = -math.inf,
    most: float = math.inf,
) -> DataFrame:
    """A simulated number of `chains`, or of all, by (coupling, seed) and chain, for couplings `least` to `most`."""
    chosen = rows[(rows.kind == "simulated") & rows.coupling.between(least, most)]
    wide = chosen.pivot(index=["coupling", "seed"], columns="chain", values=column)
    return wide.reindex(columns=labels(rows) if chains is None else list(chains))


def by_seed(values: "Series[float]") -> "Series[float]":
    """Mean over couplings, by repetition of the figure."""
    return values.groupby("seed").mean()


def log_ratio(rows: DataFrame, first: str, second: str, *, most: float = math.inf) -> "Series[float]":
    """Log ratio of the mean steps of two chains, mean over couplings up to `most`, by repetition."""
    steps = np.log(simulated(rows, "mean", [first, second], most=most))
    return by_seed(steps[first] - steps[second])


def log_ratio_of_couplings(
    rows: DataFrame, first: float, second: float, chains: Sequence[str]
) -> "Series[float]":
    """Log ratio of the mean steps at two couplings, mean over `chains`, by repetition."""
    steps = np.log(simulated(rows, "mean", chains)).mean(axis=1).unstack("coupling")
    steps = steps.reindex(columns=[first, second])
    return steps[first] - steps[second]


def beside_exact(rows: DataFrame, column: str, chains: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Simulated numbers by (coupling, seed) and chain, and the exact ones in the same shape."""
    ours = simulated(rows, column, chains)
    truth = exact(rows, column).reindex(columns=ours.columns)
    return ours, truth.loc[ours.index.get_level_values("coupling")].set_axis(ours.index)


def entries(frame: DataFrame) -> "Series[float]":
    """Every number of a frame, which may have no column at all."""
    return Series(frame.to_numpy(dtype=float).ravel())


def increase_with_blocks(rows: DataFrame) -> "Series[float]":
    """By how much the logarithm of the expected steps grows from k to k + 1, for all k and couplings."""
    return entries(exact(rows, "log_expected")[blocks(rows)].diff(axis=1))


def increase_with_coupling(rows: DataFrame, chains: Sequence[str]) -> "Series[float]":
    """By how much it grows from one coupling to the next, for all couplings and `chains`."""
    return entries(exact(rows, "log_expected")[list(chains)].diff())


def chance_of_parallel(rows: DataFrame, least: float) -> float:
    """Probability that independent parallel arrives within the budget, the largest over couplings J >= `least`."""
    chances = exact(rows, "reached")[PARALLEL]
    return float(chances[chances.index >= least].max())


def assumption_margin(rows: DataFrame) -> float:
    """The smaller of the two margins of Assumption 4.1.5, the largest over couplings."""
    chosen = rows[rows.kind == "setting"]
    return float(chosen[["field_margin", "coupling_margin"]].min(axis=1).max())
