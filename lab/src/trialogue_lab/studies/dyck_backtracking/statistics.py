"""Quantities of the study: one number per training each."""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, Statistic, shares_of

THESIS = "Thesis section 3.2.1"
ALGORITHM, LOW = "Q=4, B=4, top-p 1.0", "Q=4, B=4, top-p 1.0, low threshold"
SAMPLING = "no verifier, top-p 1.0"

trainings = Replication("training", "seeds")


@trainings
def learned(rows: Rows, column: str, data: str) -> "Series[float]":
    """A number of the trained model on one of the two laws."""
    return rows.where("training", data=data).groupby("seed")[column].mean()


@trainings
def prepared(rows: Rows) -> Counts:
    """Whether a training meets the precondition: more than 99.9 % of closing brackets in distribution."""
    return shares_of(learned("closing_accuracy", "in-distribution")(rows) > 0.999, trials=1)


@trainings
def clustered(rows: Rows, clusters: int, column: str = "purity") -> "Series[float]":
    """Share of the probe's examples that have the label of most of their cluster (`purity`, `shuffled_purity`)."""
    return rows.where("clusters", clusters=clusters).groupby("seed")[column].mean()


@trainings
def probe(rows: Rows, over_splits: str = "mean") -> "Series[float]":
    """Validation accuracy of the probe: its mean over splits, or "std", its standard deviation."""
    return rows["probe"].groupby("seed").validation_accuracy.agg(over_splits)


@trainings
def inducing(rows: Rows, /, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    """Mean of a column over the tables on error-inducing prompts."""
    return rows.where("inducing", walk=walk, **values).groupby("seed")[column].mean()


@trainings
def unseen(rows: Rows, verifier: str, top_p: float, column: str = "errors") -> "Series[float]":
    """A number of one decoding of the unseen prompts, mean over draws; `per_10000` are errors in 10,000 prompts."""
    table = rows.where("unseen", verifier=verifier, top_p=top_p)
    table = table.assign(
        per_10000=1e4 * table.errors / table.n, queries_until_correct=table.queries / table.accuracy
    )
    return table.groupby("seed")[column].mean()


def errors_ratio(first: str, second: str, top_p: float, of_first: float | None = None) -> Statistic:
    """Errors with the first verifier over those with the second; half an error is added to each, as none may be."""
    top_p_of_first = top_p if of_first is None else of_first
    return (unseen(first, top_p_of_first) + 0.5) / (unseen(second, top_p) + 0.5)


def queries_ratio(top_p: float) -> Statistic:
    """Queries of Algorithm 1 over those without a verifier."""
    return unseen("trained", top_p, "queries") / unseen("none", top_p, "queries")


def queries_ratio_until_correct(top_p: float) -> Statistic:
    """The same of queries over accuracy: how many it takes until a completion is correct, where each is a new try."""
    return unseen("trained", top_p, "queries_until_correct") / unseen("none", top_p, "queries_until_correct")


def gain(top_p: float) -> Statistic:
    """Accuracy on unseen prompts with Algorithm 1 minus that without a verifier."""
    return unseen("trained", top_p, "accuracy") - unseen("none", top_p, "accuracy")


@trainings
def speed(rows: Rows, decoding: str, batch: int, column: str = "seconds") -> "Series[float]":
    """A number of one decoding with so many rows at once: processor seconds or queries of a prompt, or both as one."""
    table = rows.where("speed", decoding=decoding, batch=batch)
    table = table.assign(
        milliseconds=1e3 * table.seconds, microseconds_per_query=1e6 * table.seconds / table.queries
    )
    return table.groupby("seed")[column].mean()


def removed(top_p: float) -> Statistic:
    """Log ratio of the errors without a verifier to those with Algorithm 1: above zero where it removes some."""
    return errors_ratio("none", "trained", top_p).log()


def remaining(rows: Rows) -> DataFrame:
    """The errors that Algorithm 1 leaves; there may be none."""
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return rows.where("unseen", verifier="trained").reindex(columns=columns).dropna(subset="error")


@trainings
def share_of_remaining(rows: Rows, column: str, value: object) -> Counts:
    """Share of the remaining errors in which `column` is `value`; `most_probable` says whether the token was."""
    left = remaining(rows).assign(most_probable=lambda table: table.token == table.best)
    return Counts((left[column] == value).groupby(left.seed).sum(), left.groupby("seed").size())


@trainings
def gain_at_backtracks(rows: Rows) -> "Series[float]":
    """Accuracy with Algorithm 1 minus that without going back, over the cells where it went back at all."""
    by_walk = {
        walk: rows.where("inducing", walk=walk).set_index(["seed", "quota", "stride"]).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    }
    return (by_walk["backtracking"] - by_walk["nucleus at backtracks"]).groupby("seed").mean()


@trainings
def diversity(rows: Rows, decoding: str, column: str = "distinct") -> "Series[float]":
    """Mean number of distinct completions of a prompt."""
    return rows.where("diversity", decoding=decoding).groupby("seed")[column].mean()


@trainings
def pooled_out_of_quota(rows: Rows) -> "Series[float]":
    """Share of all remaining errors together whose quota was used up: one number, not one per training."""
    return pd.Series([float(np.mean(remaining(rows).quota_left == 0))])
