"""What the claims, tables and figures of the study `dyck-backtracking` read from its rows."""

import math
from collections.abc import Callable

import pandas as pd
from pandas import DataFrame, Series

THESIS = "Thesis section 3.2.1"
ALGORITHM, LOW = "Q=4, B=4, top-p 1.0", "Q=4, B=4, top-p 1.0, low threshold"


def rows_of(rows: DataFrame, table: str, **values: object) -> DataFrame:
    """The rows of one table whose columns have the given values."""
    chosen = rows[rows.table == table]
    for column, value in values.items():
        chosen = chosen[chosen[column] == value] if column in chosen else chosen.iloc[:0]
    return chosen


def by_seed(rows: DataFrame, column: str) -> "Series[float]":
    """Mean of a column for each training, which is the unit of replication."""
    return rows.groupby("seed")[column].mean() if column in rows else pd.Series(dtype=float)


def inducing(rows: DataFrame, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    """Mean of a column over the tables on error-inducing prompts, by training."""
    return by_seed(rows_of(rows, "inducing", walk=walk, **values), column)


def errors_of(rows: DataFrame, verifier: str, top_p: float) -> "Series[float]":
    """Errors on the unseen prompts, mean over draws, by training."""
    return by_seed(rows_of(rows, "unseen", verifier=verifier, top_p=top_p), "errors")


def closing(rows: DataFrame, data: str) -> "Series[float]":
    """Accuracy on closing brackets, by training."""
    return by_seed(rows_of(rows, "training", data=data), "closing_accuracy")


def log_ratio(first: "Series[float]", second: "Series[float]") -> "Series[float]":
    """Logarithm of a ratio of error counts; half an error is added to each, as counts can be zero."""
    return ((first + 0.5) / (second + 0.5)).map(math.log)


def reduction(rows: DataFrame, top_p: float) -> "Series[float]":
    """Share of the errors that Algorithm 1 removes, by training."""
    return 1 - errors_of(rows, "trained", top_p) / errors_of(rows, "none", top_p)


def remaining(rows: DataFrame) -> DataFrame:
    """The errors that Algorithm 1 leaves; there may be none, and then no row that names them."""
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return rows_of(rows, "unseen", kind="remaining error", verifier="trained").reindex(columns=columns)


def share_of_remaining(rows: DataFrame, condition: Callable[[DataFrame], "Series[bool]"]) -> "Series[float]":
    """Share of the remaining errors that meet `condition`, by training."""
    left = remaining(rows)
    return condition(left).astype(float).groupby(left.seed).mean()


def gain_at_backtracks(rows: DataFrame) -> "Series[float]":
    """Accuracy with Algorithm 1 minus that without going back, over the cells where it went back at all."""
    cells = ["seed", "quota", "stride"]
    accuracy = {
        walk: rows_of(rows, "inducing", walk=walk).set_index(cells).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    }
    gain = accuracy["backtracking"] - accuracy["nucleus at backtracks"]
    return gain.groupby("seed").mean()


def diversity(rows: DataFrame, decoding: str) -> "Series[float]":
    """Mean number of distinct completions of a prompt, by training."""
    return by_seed(rows_of(rows, "diversity", decoding=decoding), "distinct")
