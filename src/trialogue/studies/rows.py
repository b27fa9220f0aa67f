"""What the claims, tables and figures of several studies ask of rows alike."""

from pandas import DataFrame, Series


def kind(rows: DataFrame, name: str) -> DataFrame:
    """The rows of one kind of measurement, without the columns of other kinds."""
    return rows[rows.kind == name].dropna(axis=1, how="all")


def by_seed(chosen: DataFrame, values: "Series[float]", how: str = "mean") -> "Series[float]":
    """Mean, or smallest or largest, of `values` over the `chosen` rows of a seed."""
    found: Series[float] = values.groupby(chosen.seed).agg(how)
    return found
