"""Statistics of the study: model calls of exact outputs, and what a budget of attempts leaves out.

A language model answers questions and requests under a constraint. `AdaptiveRejection` draws exact outputs: it rejects
outputs that violate the constraint, and excludes prefixes that earlier attempts found to be rejected.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact

questions = Replication("prompt set", "seeds", objects="the model of the run")
requests = Replication("prompt set", "request_seeds", objects="the model of the run")


def _geometric(table: DataFrame, column: str, groups: list[str]) -> "Series[float]":
    """Return the mean of a column in each group, and its geometric mean over the groups of each seed."""
    means = table.groupby(groups)[column].mean()
    return np.exp(np.log(means).groupby("seed").mean())


@questions
def question_calls(rows: Rows, measure: str, column: str = "calls") -> "Series[float]":
    """Return the mean number of model calls per output, as a geometric mean over questions.

    Args:
        rows: Measurements of a run.
        measure: "first" for outputs that start from an empty table, "shared" for successive outputs that share one
            table, or "masked" for masked decoding.
        column: "calls" for all model calls (default), or "distinct" for calls on prefixes that occur for the first time
            in the run.

    Returns:
        One geometric mean per seed.
    """
    return _geometric(rows[measure], column, ["seed", "kind"])


@questions
def first_of_shared(rows: Rows, column: str) -> "Series[float]":
    """Return the model calls of the first of the successive outputs, as a geometric mean over questions.

    Args:
        rows: Measurements of a run.
        column: "calls" for all model calls, or "distinct" for calls on prefixes that occur for the first time.

    Returns:
        One geometric mean per seed.
    """
    return _geometric(rows.where("shared", output=0), column, ["seed", "kind"])


@questions
def of_question(rows: Rows, column: str) -> "Series[float]":
    """Return the geometric mean over questions of a column of the rows "question".

    Args:
        rows: Measurements of a run.
        column: Name of the column, for example "stopping_calls", the expected model calls per accepted output of
            rejection that stops at the first rejected token.

    Returns:
        One geometric mean per seed.
    """
    return _geometric(rows["question"], column, ["seed", "kind"])


@questions
def mean_of_question(rows: Rows, column: str) -> "Series[float]":
    """Return the mean over questions of an expression of the columns of the rows "question".

    Args:
        rows: Measurements of a run.
        column: Expression for `DataFrame.eval`. "tv - drawn_tv" is the total variation distance between the
            frequencies of outputs and the restricted distribution, minus its expectation for exact samples.

    Returns:
        One mean per seed.
    """
    table = rows["question"]
    values = np.asarray(table.eval(column, engine="python"), dtype=np.float64)
    return table.assign(value=values).groupby("seed").value.mean()


def _per_request(rows: Rows, free: bool | None) -> DataFrame:
    """Return the rows of requests with model calls per output, all or only those with or without free strings."""
    table = rows["request"] if free is None else rows.where("request", free=free)
    return table.assign(
        exact_calls=table.calls / table.accepted.replace(0, np.nan),
        decoded_calls=table.masked_calls / table.masked_outputs,
    )


def _counts(holds: "Series[bool]", table: DataFrame) -> Counts:
    """Return the number of requests for which `holds` is true, and of all requests, of each seed."""
    groups = holds.groupby(table.seed)
    return Counts(groups.sum(), groups.count())


@requests
def share_within(rows: Rows, factor: float, free: bool | None = None) -> Counts:
    """Return the share of requests whose exact outputs cost at most `factor` times the calls of masked decoding.

    The calls of failed outputs count. A request without any accepted output is not within the factor.

    Args:
        rows: Measurements of a run.
        factor: Largest ratio of model calls per accepted output to model calls per output of masked decoding.
        free: Whether to use schemas with free strings only, or bounded schemas only (default: all).

    Returns:
        The counts of each seed.
    """
    table = _per_request(rows, free)
    return _counts(table.exact_calls <= factor * table.decoded_calls, table)


@requests
def beyond_budget(rows: Rows, free: bool | None = None) -> Counts:
    """Return the share of outputs of requests that fail because their budget of attempts is used up.

    Args:
        rows: Measurements of a run.
        free: Whether to use schemas with free strings only, or bounded schemas only (default: all).

    Returns:
        The counts of each seed.
    """
    sums = _per_request(rows, free).groupby("seed")[["accepted", "outputs"]].sum()
    return Counts(sums.outputs - sums.accepted, sums.outputs)


@requests
def better_than_weights(rows: Rows, free: bool | None = None) -> Counts:
    """Return the share of requests in which exact outputs give more effective samples per model call than weights.

    An exact output is one effective sample. Weighted outputs of masked decoding are worth their effective sample size,
    which is estimated from few outputs and therefore too large on average.

    Args:
        rows: Measurements of a run.
        free: Whether to use schemas with free strings only, or bounded schemas only (default: all).

    Returns:
        The counts of each seed.
    """
    table = _per_request(rows, free)
    more = table.accepted / table.calls > table.masked_effective / table.masked_calls
    return _counts(more, table)


@requests
def request_calls(rows: Rows, number: int) -> "Series[float]":
    """Return the model calls per output of a round, as a geometric mean over requests. Failed outputs count.

    Args:
        rows: Measurements of a run.
        number: 0 for the outputs that start from an empty table, 1 for those that start from the tables of round 0.

    Returns:
        One geometric mean per seed.
    """
    return _geometric(rows.where("request output", round=number), "calls", ["seed", "schema"])


@exact
def rejected_trees(rows: Rows, sampler: str, error: float) -> float:
    """Return the share of random trees on which the check of exactness finds an error in a sampler.

    Args:
        rows: Measurements of a run.
        sampler: Name of the sampler, for example "adaptive rejection".
        error: Smallest error of an output probability that counts.
    """
    errors = rows.where("tree", sampler=sampler)[["first_error", "later_error", "second_error"]]
    return float((errors.max(axis=1) > error).mean())
