"""Statistics of the study, with one number per training."""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, Statistic, counts_from_shares

ALGORITHM, LOW = "Q=4, B=4, top-p 1.0", "Q=4, B=4, top-p 1.0, low threshold"
SAMPLING = "no verifier, top-p 1.0"

trainings = Replication("training", "seeds")


@trainings
def learned(rows: Rows, column: str, data: str) -> "Series[float]":
    """Value of a column for the trained model, on data "in-distribution" or "out-of-distribution"."""
    return rows.where("training", data=data).groupby("seed")[column].mean()


@trainings
def prepared(rows: Rows) -> Counts:
    """Whether a training meets the precondition of an in-distribution accuracy above 99.9 % on closing brackets."""
    return counts_from_shares(learned("closing_accuracy", "in-distribution")(rows) > 0.999, trials=1)


@trainings
def clustered(rows: Rows, clusters: int, column: str = "purity") -> "Series[float]":
    """Purity of the clusters of the probe's examples, or "shuffled_purity" with shuffled labels."""
    return rows.where("clusters", clusters=clusters).groupby("seed")[column].mean()


@trainings
def probe(rows: Rows, over_splits: str = "mean") -> "Series[float]":
    """Validation accuracy of the probe, as the "mean" or the standard deviation "std" over splits."""
    return rows["probe"].groupby("seed").validation_accuracy.agg(over_splits)


@trainings
def inducing(rows: Rows, /, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    """Mean of a column over the completions of error-inducing prompts by one sampler."""
    return rows.where("inducing", walk=walk, **values).groupby("seed")[column].mean()


@trainings
def unseen(rows: Rows, verifier: str, top_p: float, column: str = "errors") -> "Series[float]":
    """Mean of a column over the completions of unseen prompts by one decoding.

    Further columns are "per_10000", the errors per 10,000 prompts, and "queries_until_correct", the queries divided by
    the accuracy.
    """
    table = rows.where("unseen", verifier=verifier, top_p=top_p)
    table = table.assign(
        per_10000=1e4 * table.errors / table.n, queries_until_correct=table.queries / table.accuracy
    )
    return table.groupby("seed")[column].mean()


def errors_ratio(first: str, second: str, top_p: float) -> Statistic:
    """Errors of one verifier divided by the errors of another. Half an error is added to each, since it may be zero.

    Greedy decoding, as the first one, has no top-p.
    """
    top_p_of_first = 0.0 if first == "greedy" else top_p
    return (unseen(first, top_p_of_first) + 0.5) / (unseen(second, top_p) + 0.5)


def queries_ratio(top_p: float, column: str = "queries") -> Statistic:
    """Queries with Algorithm 1 divided by queries without a verifier."""
    return unseen("trained", top_p, column) / unseen("none", top_p, column)


def queries_ratio_until_correct(top_p: float) -> Statistic:
    """Ratio of queries until a completion is correct, if every prompt is completed again after an error."""
    return queries_ratio(top_p, "queries_until_correct")


def gain(top_p: float) -> Statistic:
    """Accuracy on unseen prompts with Algorithm 1 minus accuracy without a verifier."""
    return unseen("trained", top_p, "accuracy") - unseen("none", top_p, "accuracy")


@trainings
def speed(rows: Rows, decoding: str, batch: int, column: str = "seconds") -> "Series[float]":
    """Value of a column for one decoding and batch size, such as processor "seconds" or "queries" per prompt."""
    table = rows.where("speed", decoding=decoding, batch=batch)
    table = table.assign(
        milliseconds=1e3 * table.seconds, microseconds_per_query=1e6 * table.seconds / table.queries
    )
    return table.groupby("seed")[column].mean()


def removed(top_p: float) -> Statistic:
    """Log ratio of errors without a verifier to errors with Algorithm 1. It is positive if errors are removed."""
    return errors_ratio("none", "trained", top_p).log()


def remaining(rows: Rows) -> DataFrame:
    """Return the errors that remain with Algorithm 1. The table may be empty."""
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return rows.where("unseen", verifier="trained").reindex(columns=columns).dropna(subset="error")


@trainings
def share_of_remaining(rows: Rows, column: str, value: object) -> Counts:
    """Share of the remaining errors with a value in a column.

    A further column is "most_probable", which is true if the wrong token was the most probable one.
    """
    left = remaining(rows).assign(most_probable=lambda table: table.token == table.best)
    return Counts((left[column] == value).groupby(left.seed).sum(), left.groupby("seed").size())


@trainings
def gain_at_backtracks(rows: Rows) -> "Series[float]":
    """Accuracy with Algorithm 1 minus accuracy without backtracking, over the cells with at least one backtrack."""
    with_backtracking, without = (
        rows.where("inducing", walk=walk).set_index(["seed", "quota", "stride"]).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    )
    return (with_backtracking - without).groupby("seed").mean()


@trainings
def diversity(rows: Rows, decoding: str, column: str = "distinct") -> "Series[float]":
    """Mean number of distinct completions per prompt, or its "deviation" over prompts."""
    return rows.where("diversity", decoding=decoding).groupby("seed")[column].mean()


@trainings
def pooled_out_of_quota(rows: Rows) -> "Series[float]":
    """Share of the remaining errors of all trainings for which the quota was used up, as a single number."""
    return pd.Series([float(np.mean(remaining(rows).quota_left == 0))])
