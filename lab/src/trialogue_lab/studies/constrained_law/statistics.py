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
    """Return a measurement of one decoding method, averaged over the questions of each seed.

    A language model answers the questions under a constraint, for example a regular expression.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        measure: Source of the numbers: "exact" (computed), "simulated" (on the enumerated answers) or "run" (generated
            with the model).
        rule: Name of the decoding method, for example "masked" (forbidden tokens are masked) or "smc" (sequential Monte
            Carlo).
        column: Column to average. The default "tv" is the total variation distance between the outputs and the model's
            distribution given the constraint.
        **values: Values of other columns that select the rows, for example `size=16`.

    Returns:
        One mean per seed.
    """
    return rows.where(measure, rule=rule, **values).groupby("seed")[column].mean()


@prompt_sets
def typical_calls(rows: Rows, measure: str, /, rule: str, **values: object) -> "Series[float]":
    """Return the number of model calls per output of one decoding method, as a geometric mean over questions.

    A language model answers the questions under a constraint. The geometric mean is not dominated by the few questions
    at which a method needs many calls.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        measure: Source of the numbers, as for `decoded`.
        rule: Name of the decoding method, for example "masked, weighted".
        **values: Values of other columns that select the rows, for example `size=16`.

    Returns:
        One geometric mean per seed.
    """
    table = rows.where(measure, rule=rule, **values)
    return table.queries.map(math.log).groupby(table.seed).mean().map(math.exp)


def make_sampled_statistic(rule: str, column: str = "tv") -> Statistic:
    """Return a statistic: a measurement of one decoding method on answers that were generated with a language model.

    Args:
        rule: Name of the decoding method, for example "masked" (forbidden tokens are masked).
        column: Column to average. The default "tv" is the total variation distance between the outputs and the model's
            distribution given the constraint.

    Returns:
        Function from the measurements of a run to one mean over questions per seed.
    """
    return decoded("run", rule, column)


def make_weighted_statistic(size: int, column: str = "tv", **values: object) -> Statistic:
    """Return a statistic: an exactly computed measurement of weighted masked decoding.

    Weighted masked decoding generates `size` outputs, in which tokens that violate the constraint are masked. It
    selects one output with a probability proportional to its importance weight.

    Args:
        size: Number of masked outputs. With 1, the method is plain masked decoding.
        column: Column to average. The default "tv" is the total variation distance between the output and the model's
            distribution given the constraint.
        **values: Values of other columns that select the rows.

    Returns:
        Function from the measurements of a run to one mean over questions per seed.
    """
    return decoded("exact", "masked, weighted", column, size=size, **values)


@prompt_sets
def best_weighted(rows: Rows) -> "Series[float]":
    """Return the distance of weighted masked decoding from its target (total variation).

    Weighted masked decoding generates several outputs, in which tokens that violate a constraint are masked. It selects
    one of them by its importance weight. The largest measured number of outputs is used. The target is the language
    model's distribution given the constraint.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean over questions per seed.
    """
    return make_weighted_statistic(int(rows["exact"]["size"].max()))(rows)


@prompt_sets
def gain_of_resampling_on_the_way(rows: Rows) -> "Series[float]":
    """Return the error of sequential Monte Carlo minus that of weighted masked decoding.

    Errors are total variation distances from the language model's distribution given the constraint. Both
    methods generate the same number of outputs without forbidden tokens. Sequential Monte Carlo resamples
    them during the generation. Weighted masked decoding selects one complete output by its importance weight.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean difference over questions per seed. It is negative if sequential Monte Carlo has the smaller
        error.
    """
    particles = int(rows["simulated"]["size"].max())
    return (decoded("simulated", "smc", size=particles) - make_weighted_statistic(particles, "drawn_tv"))(
        rows
    )


def _select_rejection_calls(rows: Rows) -> DataFrame:
    """Return the expected number of model calls until rejection sampling accepts an output, by question."""
    questions = ["seed", "kind"]
    table = rows["tree"].set_index(questions)[["accepted_mass"]]
    table["length"] = rows.where("run", rule="no rule").set_index(questions).queries
    return table.assign(queries=table.length / table.accepted_mass)


@exact
def rejection_queries(rows: Rows) -> float:
    """Return the expected number of model calls until rejection sampling accepts an output.

        calls = (mean number of tokens of an answer) / (probability that an answer satisfies the constraint)

    Rejection sampling generates answers without the constraint until one satisfies it. The geometric mean over all
    questions is returned.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return math.exp(_select_rejection_calls(rows).queries.map(math.log).mean())


@prompt_sets
def gain_over_rejection(rows: Rows) -> "Series[float]":
    """Return the efficiency of masked decoding relative to rejection sampling, as log10 of a ratio.

        log10((effective samples per call, masked decoding) / (accepted samples per call, rejection sampling))

    Calls are model calls. Masked decoding never generates forbidden tokens, and its outputs have importance weights.
    The effective sample size accounts for unequal weights. Rejection sampling generates answers without the constraint
    until one satisfies it.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean over questions per seed. It is positive if masked decoding is more efficient.
    """
    masked = rows.where("exact", rule="masked, weighted", size=1).set_index(["seed", "kind"]).ess_per_query
    table = _select_rejection_calls(rows)
    gain = (masked / (table.accepted_mass / table.length)).map(math.log10)
    return gain.groupby("seed").mean()


@exact
def samples_over_rejection(rows: Rows) -> float:
    """Return the efficiency of masked decoding divided by that of rejection sampling, over all questions.

    Efficiency is the number of effective samples per model call, and the result is a geometric mean over questions. See
    `gain_over_rejection` for both methods.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float(10 ** gain_over_rejection()(rows).mean())


@exact
def unexplored(rows: Rows) -> float:
    """Return the largest probability of allowed answers that are missing in the enumeration of answers.

    Answers are enumerated until the missing ones have a negligible probability. The maximum is over all questions and
    over two distributions: the model given the constraint, and masked decoding, which never samples a forbidden token.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float(rows["tree"][["unexplored_p", "unexplored_q"]].max().max())
