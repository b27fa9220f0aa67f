"""Statistics of the study about backtracking (Algorithm 1) on bracket strings, with one number per training.

If the verifier rejects a sampled token, backtracking erases the last B tokens (the stride) and appends B tokens
greedily. It does so at most Q times per string (the quota). The verifier is a trained probe, a classifier of the
model's hidden states. Prompts have other probabilities of bracket types than the training strings.
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
    """Return a measured value of each trained language model on held-out bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: "closing_accuracy" for the share of correctly predicted closing brackets, "loss" for the model's loss,
            or "entropy" for the lowest possible loss. Both losses are in nats per token.
        data: "in-distribution" for strings of the training distribution, or "out-of-distribution" for strings with
            other probabilities of the bracket types, as in prompts.

    Returns:
        One value per training seed.
    """
    return rows.where("training", data=data).groupby("seed")[column].mean()


@trainings
def prepared(rows: Rows) -> Counts:
    """Count the trained models that predict more than 99.9 % of the closing brackets correctly.

    The held-out strings are from the training distribution. The experiments of the source require this accuracy.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One success or failure per training seed.
    """
    return counts_from_shares(learned("closing_accuracy", "in-distribution")(rows) > 0.999, trials=1)


@trainings
def clustered(rows: Rows, clusters: int, column: str = "purity") -> "Series[float]":
    """Return how well clusters of a model's hidden states separate correct from erroneous prefixes.

    Clusters are found by k-means. The purity is the share of prefixes whose label, correct or erroneous, is the more
    frequent one in their cluster.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clusters: Number of clusters.
        column: "purity" (default), or "shuffled_purity" for randomly permuted labels.

    Returns:
        One purity per training seed.
    """
    return rows.where("clusters", clusters=clusters).groupby("seed")[column].mean()


@trainings
def probe(rows: Rows, over_splits: str = "mean") -> "Series[float]":
    """Return the validation accuracy of the probe.

    The probe classifies a model's hidden states into correct and erroneous prefixes. A probe is trained for each of
    several random splits of the examples into training and validation sets.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        over_splits: Aggregation over splits, "mean" (default) or "std" for the standard deviation.

    Returns:
        One number per training seed.
    """
    return rows["probe"].groupby("seed").validation_accuracy.agg(over_splits)


@trainings
def inducing(rows: Rows, /, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    """Return the mean of a quantity over completions of difficult prefixes.

    These are prefixes after which the model made an error.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        walk: Name of the decoding method, for example "nucleus" or "backtracking".
        column: Quantity to average. The default "accuracy" is the share of correct completions.
        **values: Values of other columns that select the rows, for example `quota=4`, the largest number of backtracks
            per string.

    Returns:
        One mean per training seed.
    """
    return rows.where("inducing", walk=walk, **values).groupby("seed")[column].mean()


@trainings
def unseen(rows: Rows, verifier: str, top_p: float, column: str = "errors") -> "Series[float]":
    """Return the mean of a measured quantity over repeated completions of new prompts.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        verifier: Name of the decoding method. "none" is plain sampling, and "trained" is backtracking with a trained
            probe as verifier. Other names are other verifiers and variants.
        top_p: Top-p truncation of the model.
        column: Quantity to average: "errors" (default), "accuracy", "queries" (model calls per prompt), "per_10000"
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
    """Return the statistic that divides the errors of one decoding method by another's.

    One half is added to both numbers, because they can be zero.

    Args:
        first: Name of the decoding method in the numerator, for example "none" for plain sampling, or "trained" for
            backtracking with a trained probe. "greedy" is measured without top-p.
        second: Name of the decoding method in the denominator.
        top_p: Top-p truncation of the model.

    Returns:
        A statistic with one ratio per training seed.
    """
    top_p_of_first = 0.0 if first == "greedy" else top_p
    return (unseen(first, top_p_of_first) + 0.5) / (unseen(second, top_p) + 0.5)


def queries_ratio(top_p: float, column: str = "queries") -> Statistic:
    """Return the statistic that compares the model calls of backtracking and plain sampling.

    Backtracking erases the last tokens if a trained probe, a classifier of hidden states, rejects a prefix.

    Args:
        top_p: Top-p truncation of the model.
        column: "queries" for calls per completion. "queries_until_correct" for the expected number of calls until a
            completion is correct, which is the number of calls divided by the accuracy.

    Returns:
        A statistic with one ratio per training seed.
    """
    return unseen("trained", top_p, column) / unseen("none", top_p, column)


def gain(top_p: float) -> Statistic:
    """Return the statistic that subtracts the accuracy of plain sampling from the accuracy of backtracking.

    Backtracking erases the last tokens if a trained probe, a classifier of hidden states, rejects a prefix.

    Args:
        top_p: Top-p truncation of the model.

    Returns:
        A statistic with one difference per training seed.
    """
    return unseen("trained", top_p, "accuracy") - unseen("none", top_p, "accuracy")


@trainings
def speed(rows: Rows, decoding: str, batch: int, column: str = "seconds") -> "Series[float]":
    """Return the mean of a measured cost of decoding.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        decoding: Name of the decoding method, for example "none" for plain sampling, "trained" for backtracking with a
            trained probe, or "best of n".
        batch: Batch size.
        column: Cost to average. "seconds" (default) and "milliseconds" are processor time per prompt, "queries" and
            "verifier_calls" are calls of the model and of the verifier per prompt. "microseconds_per_query" is time per
            model call, and "rank_correlation" is the correlation of model calls and wall time.

    Returns:
        One mean per training seed.
    """
    table = rows.where("speed", decoding=decoding, batch=batch)
    table = table.assign(
        milliseconds=1e3 * table.seconds, microseconds_per_query=1e6 * table.seconds / table.queries
    )
    return table.groupby("seed")[column].mean()


def remaining(rows: Rows) -> DataFrame:
    """Return the errors on new prompts that remain with backtracking.

    Backtracking erases the last tokens if a trained probe, a classifier of hidden states, rejects a prefix. It does so
    up to a maximum number of times per string (the quota).

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One row per error, with the columns "seed" of the training, "error" (kind of error), "prefix" (correct tokens
        before the error), "token" and "token_prob" (wrong token and its probability), "best" and "best_prob" (most
        probable token and its probability), and "quota_left" (unused part of the quota). The table may be empty.
    """
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return rows.where("unseen", verifier="trained").reindex(columns=columns).dropna(subset="error")


@trainings
def share_of_remaining(rows: Rows, column: str, value: object) -> Counts:
    """Count the errors that remain with backtracking and have a given property.

    Backtracking erases the last tokens if a trained probe, a classifier of hidden states, rejects a prefix.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: Column of the table of errors, for example "error" for the kind of error, "quota_left" for the unused
            number of backtracks, or "most_probable", which is true if the wrong token was the most probable one.
        value: Value of the column for errors that count.

    Returns:
        Number of errors with this value and number of all remaining errors, per training seed.
    """
    left = remaining(rows).assign(most_probable=lambda table: table.token == table.best)
    return Counts((left[column] == value).groupby(left.seed).sum(), left.groupby("seed").size())


@trainings
def gain_at_backtracks(rows: Rows) -> "Series[float]":
    """Return how much accuracy backtracking adds, compared with completing the rejected prefixes without it.

    The prompts are prefixes after which the model made an error. Differences are averaged over combinations of the
    quota (largest number of backtracks) and the stride (number of erased tokens). Combinations without any backtrack
    are omitted.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One mean difference per training seed.
    """
    with_backtracking, without = (
        rows.where("inducing", walk=walk).set_index(["seed", "quota", "stride"]).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    )
    return (with_backtracking - without).groupby("seed").mean()


@trainings
def diversity(rows: Rows, decoding: str, column: str = "distinct") -> "Series[float]":
    """Return how many of the completions of a prompt are distinct.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        decoding: Name of the decoding method. For example, "Q=4, B=4, top-p 1.0" is backtracking with at most 4
            backtracks of 4 tokens.
        column: "distinct" (default) for the mean over prompts, or "deviation" for the standard deviation over prompts.

    Returns:
        One number per training seed.
    """
    return rows.where("diversity", decoding=decoding).groupby("seed")[column].mean()


@trainings
def pooled_out_of_quota(rows: Rows) -> "Series[float]":
    """Return the share of remaining errors in strings for which no further backtrack was allowed.

    Backtracking erases the last tokens of rejected prefixes, up to a maximum number of times per string (the quota).
    Errors on new prompts are pooled over all trainings.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        A series with this single number.
    """
    return pd.Series([float(np.mean(remaining(rows).quota_left == 0))])
