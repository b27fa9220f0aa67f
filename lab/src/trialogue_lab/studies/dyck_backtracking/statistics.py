"""Statistics of the study about backtracking (Algorithm 1) on bracket strings, with one number per training.

If the verifier rejects a sampled token, backtracking erases the last B tokens (the stride) and appends B tokens
greedily. It does so at most Q times per string (the quota). The verifier is a probe, a trained classifier of the
model's hidden states. The bracket types have other probabilities in prompts than in training strings.
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
    """Return a measurement of language models that are trained on bracket strings, for new strings.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "closing_accuracy" for the fraction of correctly predicted closing brackets, "loss" for the model's
            loss, or "entropy" for the lowest possible loss. Losses are in nats per token.
        data: "in-distribution" for strings of the training distribution, or "out-of-distribution" for strings with
            other probabilities of the bracket types.

    Returns:
        One number per training seed.
    """
    return rows.where("training", data=data).groupby("seed")[column].mean()


@trainings
def prepared(rows: Rows) -> Counts:
    """Count the trained language models that predict more than 99.9 % of the closing brackets correctly.

    The models are evaluated on new strings from the training distribution. The published experiments require this
    accuracy.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One success or failure per training seed.
    """
    return counts_from_shares(learned("closing_accuracy", "in-distribution")(rows) > 0.999, trials=1)


@trainings
def clustered(rows: Rows, clusters: int, column: str = "purity") -> "Series[float]":
    """Return the purity of clusters of a language model's hidden states.

    The hidden states belong to correct and erroneous prefixes, and are clustered by k-means. The purity is the fraction
    of prefixes that have the most frequent label of their cluster, "correct" or "erroneous".

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        clusters: Number of clusters.
        column: "purity" (default), or "shuffled_purity" for randomly permuted labels.

    Returns:
        One purity per training seed.
    """
    return rows.where("clusters", clusters=clusters).groupby("seed")[column].mean()


@trainings
def probe(rows: Rows, over_splits: str = "mean") -> "Series[float]":
    """Return the validation accuracy of a probe of a language model's hidden states.

    The probe classifies hidden states into correct and erroneous prefixes. One probe is trained per random split of the
    examples into training and validation sets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        over_splits: Aggregation over splits, "mean" (default) or "std" for the standard deviation.

    Returns:
        One mean or standard deviation per training seed.
    """
    return rows["probe"].groupby("seed").validation_accuracy.agg(over_splits)


@trainings
def inducing(rows: Rows, /, walk: str, column: str = "accuracy", **values: object) -> "Series[float]":
    """Return a measurement of a decoding method on prefixes after which the language model made an error before.

    The mean over all completions of these prefixes is returned.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        walk: Name of the decoding method, for example "nucleus" or "backtracking".
        column: Column to average. The default "accuracy" is the fraction of correct completions.
        **values: Values of other columns that select the rows. For example, `quota=4` selects completions with at most
            4 backtracks.

    Returns:
        One mean per training seed.
    """
    return rows.where("inducing", walk=walk, **values).groupby("seed")[column].mean()


@trainings
def unseen(rows: Rows, verifier: str, top_p: float, column: str = "errors") -> "Series[float]":
    """Return a measurement of a decoding method on new prompts, averaged over repeated completions.

    A prompt is the beginning of a bracket string, which the method completes with a trained language model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        verifier: Name of the decoding method. "none" is plain sampling, and "trained" is backtracking with a trained
            verifier. Other names are other verifiers and variants.
        top_p: Top-p truncation of the language model.
        column: Column to average: "errors" (default), "accuracy", "queries" (model calls per prompt), "per_10000"
            (errors per 10,000 prompts) or "queries_until_correct" (queries divided by accuracy).

    Returns:
        One mean per training seed.
    """
    table = rows.where("unseen", verifier=verifier, top_p=top_p)
    table = table.assign(
        per_10000=1e4 * table.errors / table.n, queries_until_correct=table.queries / table.accuracy
    )
    return table.groupby("seed")[column].mean()


def errors_ratio(first: str, second: str, top_p: float) -> Statistic:
    """Return a statistic: the number of errors of one decoding method divided by that of another.

        ratio = (errors of the first + 1/2) / (errors of the second + 1/2)

    One half is added because numbers of errors can be zero.

    Args:
        first: Name of the decoding method in the numerator. For example, "none" is plain sampling, and "trained" is
            backtracking with a trained verifier. "greedy" is measured without top-p.
        second: Name of the decoding method in the denominator.
        top_p: Top-p truncation of the language model.

    Returns:
        Function from the measurements of a run to one ratio per training seed.
    """
    top_p_of_first = 0.0 if first == "greedy" else top_p
    return (unseen(first, top_p_of_first) + 0.5) / (unseen(second, top_p) + 0.5)


def queries_ratio(top_p: float, column: str = "queries") -> Statistic:
    """Return a statistic: the number of model calls of backtracking divided by that of plain sampling.

    Backtracking erases the last tokens of a prefix that its verifier rejects.

    Args:
        top_p: Top-p truncation of the language model.
        column: "queries" for model calls per completion. "queries_until_correct" for model calls divided by the
            accuracy, which is the expected number of calls until a completion is correct.

    Returns:
        Function from the measurements of a run to one ratio per training seed.
    """
    return unseen("trained", top_p, column) / unseen("none", top_p, column)


def gain(top_p: float) -> Statistic:
    """Return a statistic: the accuracy of backtracking minus that of plain sampling.

    Backtracking erases the last tokens of a prefix that its verifier rejects. The accuracy is the fraction of correct
    completions of new prompts.

    Args:
        top_p: Top-p truncation of the language model.

    Returns:
        Function from the measurements of a run to one difference per training seed.
    """
    return unseen("trained", top_p, "accuracy") - unseen("none", top_p, "accuracy")


@trainings
def speed(rows: Rows, decoding: str, batch: int, column: str = "seconds") -> "Series[float]":
    """Return the cost of completing a prompt with a decoding method, for example in seconds or model calls.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        decoding: Name of the decoding method, for example "none" (plain sampling), "trained" (backtracking with a
            trained verifier) or "best of n".
        batch: Batch size.
        column: Cost to average. "seconds" (default) and "milliseconds" are processor time per prompt. "queries" and
            "verifier_calls" are calls of the model and of the verifier per prompt. "microseconds_per_query" is
            processor time per model call. "rank_correlation" is the correlation of model calls and wall time.

    Returns:
        One mean per training seed.
    """
    table = rows.where("speed", decoding=decoding, batch=batch)
    table = table.assign(
        milliseconds=1e3 * table.seconds, microseconds_per_query=1e6 * table.seconds / table.queries
    )
    return table.groupby("seed")[column].mean()


def select_remaining_errors(rows: Rows) -> DataFrame:
    """Return a table of the errors that backtracking makes on new prompts.

    Backtracking erases the last tokens of a prefix that its verifier rejects. It does so up to a maximum number of
    times per string (the quota).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One row per error. The table may be empty. Its columns are:

        - "seed": seed of the training.
        - "error": kind of error.
        - "prefix": correct tokens before the error.
        - "token" and "token_prob": wrong token and its probability.
        - "best" and "best_prob": most probable token and its probability.
        - "quota_left": unused part of the quota.
    """
    columns = ["seed", "error", "prefix", "token", "token_prob", "best", "best_prob", "quota_left"]
    return rows.where("unseen", verifier="trained").reindex(columns=columns).dropna(subset="error")


@trainings
def share_of_remaining(rows: Rows, column: str, value: object) -> Counts:
    """Count the errors of backtracking on new prompts that have a given property.

    Backtracking erases the last tokens of a prefix that its verifier rejects.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Property of an error: "error" (kind of error), "quota_left" (number of backtracks that were still
            allowed), or "most_probable" (whether the wrong token was the most probable one).
        value: Value of the property for errors that count.

    Returns:
        Number of errors with this value and number of all errors, per training seed.
    """
    left = select_remaining_errors(rows).assign(most_probable=lambda table: table.token == table.best)
    return Counts((left[column] == value).groupby(left.seed).sum(), left.groupby("seed").size())


@trainings
def gain_at_backtracks(rows: Rows) -> "Series[float]":
    """Return the accuracy of backtracking minus that of plain sampling, at prefixes that the verifier rejects.

    Both methods complete the prefixes that the verifier rejected. Backtracking erases their last tokens, and
    plain sampling does not. The accuracy is the fraction of correct completions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One difference per training seed, averaged over the settings of backtracking.
    """
    with_backtracking, without = (
        rows.where("inducing", walk=walk).set_index(["seed", "quota", "stride"]).accuracy
        for walk in ("backtracking", "nucleus at backtracks")
    )
    return (with_backtracking - without).groupby("seed").mean()


@trainings
def diversity(rows: Rows, decoding: str, column: str = "distinct") -> "Series[float]":
    """Return the number of distinct completions of the same prompt by a decoding method, as a mean over prompts.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        decoding: Name of the decoding method. For example, "Q=4, B=4, top-p 1.0" is backtracking with at most 4
            backtracks of 4 tokens.
        column: "distinct" (default) for the mean over prompts, or "deviation" for the standard deviation over prompts.

    Returns:
        One number per training seed.
    """
    return rows.where("diversity", decoding=decoding).groupby("seed")[column].mean()


@trainings
def pooled_out_of_quota(rows: Rows) -> "Series[float]":
    """Return the fraction of errors of backtracking that occur after all allowed backtracks were used.

    Backtracking erases the last tokens of a rejected prefix, but only a limited number of times per string
    (the quota).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        Series with a single number for all trainings.
    """
    return pd.Series([float(np.mean(select_remaining_errors(rows).quota_left == 0))])
