"""Statistics of the study, which compares decoding methods of a language model under a constraint.

The target is the model's distribution of answers, given that they satisfy the constraint. Each seed selects one
question per kind of constraint, a regular expression and a JSON schema.
"""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, Statistic, exact

prompt_sets = Replication("prompt set", "seeds", objects="the model of the run")


@prompt_sets
def decoded(rows: Rows, measure: str, /, rule: str, column: str = "tv", **values: object) -> "Series[float]":
    """Return the mean of a measured quantity over questions, for one decoding method.

    A language model answers questions under a constraint. Each seed selects its own questions.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        measure: "exact" for numbers computed on all allowed answers, "simulated" for samples from them, or "run" for
            samples from the model.
        rule: Name of the decoding method, for example "masked" (forbidden tokens are masked) or "smc" (sequential Monte
            Carlo).
        column: Name of the quantity. The default "tv" is the total variation distance between the output distribution
            and the model's distribution given the constraint.
        **values: Values of other columns that select the rows, for example `size=16`.

    Returns:
        One mean per seed.
    """
    return rows.where(measure, rule=rule, **values).groupby("seed")[column].mean()


def as_run(rule: str, column: str = "tv") -> Statistic:
    """Return the statistic `decoded` for samples that a decoding method generated with the language model.

    Args:
        rule: Name of the decoding method, for example "masked" (forbidden tokens are masked).
        column: Name of the averaged quantity. The default "tv" is the total variation distance between the output
            distribution and the model's distribution given the constraint.

    Returns:
        A statistic with one mean over questions per seed.
    """
    return decoded("run", rule, column)


def weighted(size: int, column: str = "tv", **values: object) -> Statistic:
    """Return the statistic `decoded` for weighted masked decoding, which is computed without sampling.

    Masked decoding samples from a language model and masks tokens that the constraint forbids. Of `size` masked
    outputs, one is selected with a probability proportional to its importance weight.

    Args:
        size: Number of masked outputs. With 1, the method is masked decoding.
        column: Name of the averaged quantity. The default "tv" is the total variation distance between the output
            distribution and the model's distribution given the constraint.
        **values: Values of other columns that select the rows.

    Returns:
        A statistic with one mean over questions per seed.
    """
    return decoded("exact", "masked, weighted", column, size=size, **values)


@prompt_sets
def best_weighted(rows: Rows) -> "Series[float]":
    """Return the total variation distance from the target, for the most expensive weighted masked decoding.

    The target is a language model's distribution of answers given a constraint. Weighted masked decoding samples
    several outputs, in which forbidden tokens are masked, and selects one by its importance weight. The largest
    measured number of outputs is used.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One mean distance over questions per seed.
    """
    return weighted(int(rows["exact"]["size"].max()))(rows)


@prompt_sets
def gain_of_resampling_on_the_way(rows: Rows) -> "Series[float]":
    """Compare resampling of partial outputs with a selection among complete outputs.

    The first method is sequential Monte Carlo. The second selects one of equally many masked outputs by its importance
    weight. Both are compared by the total variation distance between sampled answers and the target, which is a
    language model's distribution of answers given a constraint. The largest measured number of particles is used.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One mean difference over questions per seed. It is negative if sequential Monte Carlo is closer to the target.
    """
    particles = int(rows["simulated"]["size"].max())
    return (decoded("simulated", "smc", size=particles) - weighted(particles, "drawn_tv"))(rows)


def _rejection(rows: Rows) -> DataFrame:
    """Return the expected number of model calls per accepted output of rejection sampling, by question."""
    questions = ["seed", "kind"]
    table = rows["tree"].set_index(questions)[["accepted_mass"]]
    table["length"] = rows.where("run", rule="no rule").set_index(questions).queries
    return table.assign(queries=table.length / table.accepted_mass)


@exact
def rejection_queries(rows: Rows) -> float:
    """Return the expected number of model calls until rejection sampling accepts an output.

    Rejection sampling generates answers without the constraint until one satisfies it. For one question, the
    expectation is the mean length of an answer divided by the probability that it satisfies the constraint. The
    geometric mean over all questions is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return math.exp(_rejection(rows).queries.map(math.log).mean())


@prompt_sets
def gain_over_rejection(rows: Rows) -> "Series[float]":
    """Compare the efficiency of weighted masked decoding and rejection sampling.

    Efficiency is the number of effective samples per model call. Masked decoding masks forbidden tokens, and corrects
    its outputs by importance weights. The effective sample size accounts for unequal weights. Rejection sampling
    generates answers without the constraint until one satisfies it.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One mean of log10 ratios over questions per seed. It is positive if masked decoding is more efficient.
    """
    masked = rows.where("exact", rule="masked, weighted", size=1).set_index(["seed", "kind"]).ess_per_query
    table = _rejection(rows)
    gain = (masked / (table.accepted_mass / table.length)).map(math.log10)
    return gain.groupby("seed").mean()


@exact
def samples_over_rejection(rows: Rows) -> float:
    """Return how much more efficient weighted masked decoding is than rejection sampling.

    The number of effective samples per model call is divided by that of rejection sampling. The geometric mean over all
    questions is returned. See `gain_over_rejection` for both methods.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return float(10 ** gain_over_rejection()(rows).mean())


@exact
def unexplored(rows: Rows) -> float:
    """Return the largest probability of allowed answers that the enumeration did not reach.

    The maximum is taken over all questions, and over two distributions: the model given the constraint, and masked
    decoding.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return float(rows["tree"][["unexplored_p", "unexplored_q"]].max().max())
