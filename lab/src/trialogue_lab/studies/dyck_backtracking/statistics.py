"""Statistics of the study about backtracking (Algorithm 1) on bracket strings, with one number per training.

If the verifier rejects a sampled token, backtracking erases the last B tokens (the stride) and appends B tokens
greedily. It does so at most Q times per string (the quota). The trained probe, a classifier of the model's hidden
states, is the verifier. Prompts are out of distribution: they have other probabilities of bracket types than the
training strings.
"""

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, Statistic, counts_from_shares

ALGORITHM, LOW = "Q=4, B=4, top-p 1.0", "Q=4, B=4, top-p 1.0, low threshold"
SAMPLING = "no verifier, top-p 1.0"

trainings = Replication("training", "seeds")


@trainings
def learned(rows: Rows, column: str, data: str) -> "Series[float]":
    """Return a measured value of each trained model on held-out bracket strings.

    Args:
        rows: Measured rows of a run, by kind.
        column: "closing_accuracy", "loss" in nats per token, or "entropy" of the strings in nats per token.
        data: "in-distribution" for strings of the training distribution, or "out-of-distribution" for strings of the
            distribution of prompts.

    Returns:
        One value per training seed.
    """
    return rows.where("training", data=data).groupby("seed")[column].mean()


@trainings
def prepared(rows: Rows) -> Counts:
    """Count the trainings whose accuracy on in-distribution closing brackets is above 99.9 %.

    This accuracy is a precondition of the source.

    Returns:
        One success or failure per training seed.
    """
    return counts_from_shares(learned("closing_accuracy", "in-distribution")(rows) > 0.999, trials=1)


@trainings
def clustered(rows: Rows, clusters: int, column: str = "purity") -> "Series[float]":
    """Return how well k-means clusters of hidden states separate correct from erroneous prefixes.

    The purity is the share of prefixes that have the more frequent label of their cluster.

    Args:
        rows: Measured rows of a run, by kind.
        clusters: Number of clusters.
        column: "purity" (default), or "shuffled_purity" for randomly permuted labels.

    Returns:
        One purity per training seed.
    """
    return rows.where("clusters", clusters=clusters).groupby("seed")[column].mean()


@trainings
def probe(rows: Rows, over_splits: str = "mean") -> "Series[float]":
    """Return the validation accuracy of the probe, a classifier of hidden states into correct and erroneous prefixes.

    Args:
        rows: Measured rows of a run, by kind.
        over_splits: Aggregation over random splits of the examples, "mean" (default) or "std".

    Returns:
        One number per training seed.
    """
    return rows["probe"].groupby("seed").validation_accuracy.agg(over_splits)


@trainings
def inducing(rows: Rows, /, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    """Return the mean of a column over completions of prompts at which the model is known to err.

    Args:
        rows: Measured rows of a run, by kind.
        walk: Name of the decoding method, for example "nucleus" or "backtracking".
        column: Column to average. The default "accuracy" is the share of correct completions.
        **values: Values of other columns that select the rows, for example `quota=4`.

    Returns:
        One mean per training seed.
    """
    return rows.where("inducing", walk=walk, **values).groupby("seed")[column].mean()


@trainings
def unseen(rows: Rows, verifier: str, top_p: float, column: str = "errors") -> "Series[float]":
    """Return the mean of a column over repeated completions of new out-of-distribution prompts.

    Args:
        rows: Measured rows of a run, by kind.
        verifier: Name of the decoding, which is backtracking with this verifier, a variant of it, or "none" for plain
            sampling.
        top_p: Top-p truncation of the model.
        column: Column to average: "errors" (default), "accuracy", "queries" (model calls per prompt), "per_10000"
            (errors per 10,000 prompts) or "queries_until_correct" (queries divided by the accuracy).

    Returns:
        One mean per training seed.
    """
    table = rows.where("unseen", verifier=verifier, top_p=top_p)
    table = table.assign(
        per_10000=1e4 * table.errors / table.n, queries_until_correct=table.queries / table.accuracy
    )
    return table.groupby("seed")[column].mean()


def errors_ratio(first: str, second: str, top_p: float) -> Statistic:
    """Return the ratio of the numbers of errors of two decodings on new prompts.

    One half is added to both numbers, because they can be zero.

    Args:
        first: Name of the decoding in the numerator (see `unseen`). "greedy" is measured without top-p.
        second: Name of the decoding in the denominator.
        top_p: Top-p truncation of the model.
    """
    top_p_of_first = 0.0 if first == "greedy" else top_p
    return (unseen(first, top_p_of_first) + 0.5) / (unseen(second, top_p) + 0.5)


def queries_ratio(top_p: float, column: str = "queries") -> Statistic:
    """Return the ratio of model calls, backtracking divided by plain sampling.

    The verifier is the trained probe, a classifier of hidden states.

    Args:
        top_p: Top-p truncation of the model.
        column: "queries" for calls per completion, or "queries_until_correct" for calls divided by the accuracy.
    """
    return unseen("trained", top_p, column) / unseen("none", top_p, column)


def queries_ratio_until_correct(top_p: float) -> Statistic:
    """Return the ratio of model calls until a completion is correct, backtracking divided by plain sampling.

    Prompts are completed again after every error. The verifier is the trained probe, a classifier of hidden states.

    Args:
        top_p: Top-p truncation of the model.
    """
    return queries_ratio(top_p, "queries_until_correct")


def gain(top_p: float) -> Statistic:
    """Return the accuracy of backtracking on new prompts minus the accuracy of plain sampling.

    The verifier is the trained probe, a classifier of hidden states.

    Args:
        top_p: Top-p truncation of the model.
    """
    return unseen("trained", top_p, "accuracy") - unseen("none", top_p, "accuracy")


@trainings
def speed(rows: Rows, decoding: str, batch: int, column: str = "seconds") -> "Series[float]":
    """Return the mean of a column of the measurements of speed.

    Args:
        rows: Measured rows of a run, by kind.
        decoding: Name of the decoding, for example "trained", "none" or "best of n".
        batch: Batch size.
        column: Column to average. All are per prompt: "seconds" (default) and "milliseconds" of processor time,
            "queries" (model calls) and "verifier_calls". "microseconds_per_query" and "rank_correlation" (of queries
            and wall time) are further columns.

    Returns:
        One mean per training seed.
    """
    table = rows.where("speed", decoding=decoding, batch=batch)
    table = table.assign(
        milliseconds=1e3 * table.seconds, microseconds_per_query=1e6 * table.seconds / table.queries
    )
    return table.groupby("seed")[column].mean()


def removed(top_p: float) -> Statistic:
    """Return the log ratio of errors of plain sampling to errors of backtracking, on new prompts.

    It is positive if backtracking removes errors. The verifier is the trained probe, a classifier of hidden states.

    Args:
        top_p: Top-p truncation of the model.
    """
    return errors_ratio("none", "trained", top_p).log()


def remaining(rows: Rows) -> DataFrame:
    """Return the errors on new prompts that backtracking does not remove.

    The verifier is the trained probe, a classifier of hidden states.

    Returns:
        One row per error: training seed, kind of error, correct prefix, wrong token and its probability, most probable
        token and its probability, and unused part of the quota of backtracks. The table may be empty.
    """
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return rows.where("unseen", verifier="trained").reindex(columns=columns).dropna(subset="error")


@trainings
def share_of_remaining(rows: Rows, column: str, value: object) -> Counts:
    """Count the remaining errors of backtracking (see `remaining`) that have a value in a column.

    Args:
        rows: Measured rows of a run, by kind.
        column: Column of `remaining`, or "most_probable", which is true if the wrong token was the most probable one.
        value: The value to count.

    Returns:
        Errors with this value and all remaining errors, per training seed.
    """
    left = remaining(rows).assign(most_probable=lambda table: table.token == table.best)
    return Counts((left[column] == value).groupby(left.seed).sum(), left.groupby("seed").size())


@trainings
def gain_at_backtracks(rows: Rows) -> "Series[float]":
    """Return the accuracy with backtracking minus the accuracy of completing rejected prefixes without backtracking.

    Prompts are prefixes at which the model is known to err. Combinations of quota and stride without any backtrack are
    omitted.

    Returns:
        One mean over quotas and strides per training seed.
    """
    with_backtracking, without = (
        rows.where("inducing", walk=walk).set_index(["seed", "quota", "stride"]).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    )
    return (with_backtracking - without).groupby("seed").mean()


@trainings
def diversity(rows: Rows, decoding: str, column: str = "distinct") -> "Series[float]":
    """Return how many of the completions of one prompt are distinct.

    Args:
        rows: Measured rows of a run, by kind.
        decoding: Name of the decoding, for example "Q=4, B=4, top-p 1.0".
        column: "distinct" (default) for the mean over prompts, or "deviation" for the standard deviation.

    Returns:
        One number per training seed.
    """
    return rows.where("diversity", decoding=decoding).groupby("seed")[column].mean()


@trainings
def pooled_out_of_quota(rows: Rows) -> "Series[float]":
    """Return the share of remaining errors of backtracking in strings that had used up their quota of backtracks.

    The errors of all trainings are pooled, so that the result is a single number.
    """
    return pd.Series([float(np.mean(remaining(rows).quota_left == 0))])
