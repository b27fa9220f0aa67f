"""Statistics of the study about the model calls of exact outputs under a constraint.

A language model answers questions and requests under a constraint. `AdaptiveRejection` samples exact outputs: it
rejects outputs that violate the constraint, stores the rejected prefixes in a table, and never samples them again. An
attempt ends with an accepted output or a rejected prefix.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact

questions = Replication("prompt set", "seeds", objects="the model of the run")
requests = Replication("prompt set", "request_seeds", objects="the model of the run")


def _average_geometrically(table: DataFrame, column: str, groups: list[str]) -> "Series[float]":
    """Return, for each seed, the geometric mean over groups of the mean of a column in each group."""
    means = table.groupby(groups)[column].mean()
    return np.exp(np.log(means).groupby("seed").mean())


@questions
def question_calls(rows: Rows, measure: str, column: str = "calls") -> "Series[float]":
    """Return the number of model calls per answer to questions with a constraint, as a geometric mean.

    The answers are exact samples of a language model under the constraint. The sampler rejects invalid answers, and
    stores the rejected prefixes in a table.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        measure: "first" for outputs that start from an empty table, "shared" for successive outputs that share one
            table, or "masked" for masked decoding, which is not exact.
        column: "calls" for all model calls (default), or "distinct" for calls on prefixes that occur for the first time
            in the run.

    Returns:
        One geometric mean per seed.
    """
    return _average_geometrically(rows[measure], column, ["seed", "kind"])


@questions
def first_of_shared(rows: Rows, column: str) -> "Series[float]":
    """Return the number of model calls for the first answer to a question, as a geometric mean over questions.

    The answer is an exact sample of a language model under a constraint. Later answers, which reuse its table of
    rejected prefixes, are omitted.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "calls" for all model calls, or "distinct" for calls on prefixes that occur for the first time.

    Returns:
        One geometric mean per seed.
    """
    return _average_geometrically(rows.where("shared", output=0), column, ["seed", "kind"])


@questions
def of_question(rows: Rows, column: str) -> "Series[float]":
    """Return a measurement of sampling answers to questions under a constraint, as a geometric mean over questions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Column of the rows of kind "question". For example, "stopping_calls" is the expected number of model
            calls per accepted output of rejection sampling that stops at the first rejected token.

    Returns:
        One geometric mean per seed.
    """
    return _average_geometrically(rows["question"], column, ["seed", "kind"])


@questions
def mean_of_question(rows: Rows, column: str) -> "Series[float]":
    """Return the mean over questions of an expression, for example a ratio of measured columns.

    The measurements are about sampling answers to the questions under a constraint.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Expression for `DataFrame.eval` of columns of the rows of kind "question". For example, "tv - drawn_tv"
            is the total variation distance between sampled outputs and the target, minus the expected distance of exact
            samples.

    Returns:
        One mean per seed.
    """
    table = rows["question"]
    values = np.asarray(table.eval(column, engine="python"), dtype=np.float64)
    return table.assign(value=values).groupby("seed").value.mean()


def _select_requests(rows: Rows, free: bool | None) -> DataFrame:
    """Return the measurements of requests, with model calls per output.

    `free` selects JSON schemas with (True) or without (False) strings of arbitrary content. None selects all.
    """
    table = rows["request"] if free is None else rows.where("request", free=free)
    return table.assign(
        exact_calls=table.calls / table.accepted.replace(0, np.nan),
        decoded_calls=table.masked_calls / table.masked_outputs,
    )


def _count_by_seed(holds: "Series[bool]", table: DataFrame) -> Counts:
    """Return, for each seed, the number of requests for which `holds` is true and the number of requests."""
    groups = holds.groupby(table.seed)
    return Counts(groups.sum(), groups.count())


@requests
def share_within(rows: Rows, factor: float, free: bool | None = None) -> Counts:
    """Count the requests for JSON at which exact sampling costs at most `factor` times as much as masked decoding.

    Masked decoding never samples a forbidden token, and is not exact. The cost is the number of model calls per
    accepted output. A request without any accepted output does not count.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        factor: Largest allowed ratio of both costs.
        free: True for schemas with free strings only, False for schemas without free strings only, None
            (default) for all.

    Returns:
        Number of such requests and number of requests, per seed.
    """
    table = _select_requests(rows, free)
    return _count_by_seed(table.exact_calls <= factor * table.decoded_calls, table)


@requests
def beyond_budget(rows: Rows, free: bool | None = None) -> Counts:
    """Count the outputs of exact sampling that fail because every allowed attempt violated the constraint.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        free: True for schemas with free strings only, False for schemas without free strings only, None
            (default) for all.

    Returns:
        Number of failed outputs and number of outputs, per seed.
    """
    sums = _select_requests(rows, free).groupby("seed")[["accepted", "outputs"]].sum()
    return Counts(sums.outputs - sums.accepted, sums.outputs)


@requests
def better_than_weights(rows: Rows, free: bool | None = None) -> Counts:
    """Count the requests for JSON at which exact sampling is more efficient than weighted masked decoding.

    Efficiency is the number of effective samples per model call. An exact output is one effective sample. The outputs
    of masked decoding have importance weights w, and their effective sample size is (sum w)^2 / sum w^2. This estimate
    is too large on average, because there are few outputs.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        free: True for schemas with free strings only, False for schemas without free strings only, None (default) for
            all.

    Returns:
        Number of such requests and number of requests, per seed.
    """
    table = _select_requests(rows, free)
    more = table.accepted / table.calls > table.masked_effective / table.masked_calls
    return _count_by_seed(more, table)


@requests
def request_calls(rows: Rows, number: int) -> "Series[float]":
    """Return the number of model calls per output for requests of JSON, as a geometric mean over requests.

    Outputs are exact samples of a language model under a JSON schema. Failed outputs are included.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        number: 0 for outputs that start from an empty table of rejected prefixes, or 1 for outputs that start from the
            tables of the first ones.

    Returns:
        One geometric mean per seed.
    """
    return _average_geometrically(rows.where("request output", round=number), "calls", ["seed", "schema"])


@exact
def rejected_trees(rows: Rows, sampler: str, error: float) -> float:
    """Return the fraction of random models on which the output probabilities of a sampler are wrong.

    The models are small trees of token sequences, of which a constraint allows some. The output probabilities are
    computed exactly and compared with the target.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Name of the sampler, for example "adaptive rejection".
        error: Probabilities are wrong if the largest absolute error exceeds this number.
    """
    errors = rows.where("tree", sampler=sampler)[["first_error", "later_error", "second_error"]]
    return float((errors.max(axis=1) > error).mean())
