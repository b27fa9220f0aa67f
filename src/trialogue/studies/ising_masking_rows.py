"""What the claims, tables and figures of the study `ising-masking` read from its rows."""

import pandas as pd
from pandas import DataFrame, Series

LARGE = 1000
"""Training sets of at least so many samples are held against the limit of many samples."""


def fits(rows: DataFrame, coupling: float, size: int, masks: str = "one", least: int = 0) -> DataFrame:
    """The measured rows of one coupling, number of masked sites and reading of the masks, from `least` samples on."""
    chosen = rows[(rows.kind == "fit") & (rows.coupling == coupling)]
    return chosen[(chosen.block_size == size) & (chosen.masks == masks) & (chosen.n >= least)]


def scaled_error(
    rows: DataFrame, coupling: float, size: int, masks: str = "one", least: int = LARGE
) -> "Series[float]":
    """n times the squared error by (seed, n); an infinite error stays infinite."""
    chosen = fits(rows, coupling, size, masks, least).set_index(["seed", "n"])
    scaled = chosen.squared_error.astype(float) * chosen.index.get_level_values("n")
    return pd.Series(scaled, dtype=float)


def by_seed(values: "Series[float]") -> "Series[float]":
    """Mean over the sizes of the training set, by repetition of the figure."""
    return values.groupby("seed").mean()


def exact(rows: DataFrame, coupling: float, masks: str = "one", pairs: str = "unordered") -> DataFrame:
    """The exact numbers of one coupling by number of masked sites."""
    chosen = rows[(rows.kind == "exact") & (rows.coupling == coupling)]
    chosen = chosen[(chosen.masks == masks) & (chosen.pairs == pairs)]
    return chosen.set_index(chosen.block_size.astype(int))


def couplings(rows: DataFrame) -> list[float]:
    """The couplings that were measured."""
    return sorted(rows[rows.kind == "exact"].coupling.unique().tolist())


def block_sizes(rows: DataFrame) -> list[int]:
    """The numbers of masked sites that were measured."""
    return sorted(rows[rows.kind == "exact"].block_size.astype(int).unique().tolist())
