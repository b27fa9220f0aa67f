"""Statistics of the study, which compares samplers of a language model under a constraint on single questions.

The target is the model's distribution of answers given that they satisfy the constraint. Each seed selects one question
per kind of constraint, a regular expression and a JSON schema.
"""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, Statistic, exact

prompt_sets = Replication("prompt set", "seeds", objects="the model of the run")


@prompt_sets
def decoded(rows: Rows, measure: str, /, rule: str, column: str = "tv", **values: object) -> "Series[float]":
    """Return the mean of a column over the questions of each seed, for one decoding method.

    Args:
        rows: Measured rows of a run, by kind.
        measure: "exact" for numbers computed on the enumerated answers, "simulated" for samples from them, or "run" for
            samples from the model.
        rule: Name of the decoding method, for example "masked" or "smc".
        column: Column to average. The default "tv" is the total variation distance from the target.
        **values: Values of other columns that select the rows, for example `size=16`.

    Returns:
        One mean per seed.
    """
    return rows.where(measure, rule=rule, **values).groupby("seed")[column].mean()


def as_run(rule: str, column: str = "tv") -> Statistic:
    """Return the statistic `decoded` for a sampler that runs on the model.

    Args:
        rule: Name of the sampler.
        column: Column to average over questions. The default "tv" is the total variation distance from the target.
    """
    return decoded("run", rule, column)


def weighted(size: int, column: str = "tv", **values: object) -> Statistic:
    """Return the statistic `decoded` for one output that is drawn by importance weight from several masked outputs.

    Args:
        size: Number of outputs of masked decoding, one of which is drawn. With 1, the method is masked decoding.
        column: Column to average over questions. The default "tv" is the exact total variation distance from the
            target.
        **values: Values of other columns that select the rows.
    """
    return decoded("exact", "masked, weighted", column, size=size, **values)


@prompt_sets
def best_weighted(rows: Rows) -> "Series[float]":
    """Return the total variation distance between the target and weighted draws from masked outputs.

    The largest measured number of masked outputs is used. Distances are averaged over the questions of each seed.
    """
    return weighted(int(rows["exact"]["size"].max()))(rows)


@prompt_sets
def gain_of_resampling_on_the_way(rows: Rows) -> "Series[float]":
    """Return the distance of sequential Monte Carlo minus the distance of a single weighted draw at the end.

    Both methods use the largest measured number of particles. Distances are total variations between the target and the
    shares of answers in equally many samples, averaged over the questions of each seed. A negative number means that
    resampling during generation helps.
    """
    particles = int(rows["simulated"]["size"].max())
    return (decoded("simulated", "smc", size=particles) - weighted(particles, "drawn_tv"))(rows)


def _rejection(rows: Rows) -> DataFrame:
    """Return the expected model calls per output of rejection, by question."""
    questions = ["seed", "kind"]
    table = rows["tree"].set_index(questions)[["accepted_mass"]]
    table["length"] = rows.where("run", rule="no rule").set_index(questions).queries
    return table.assign(queries=table.length / table.accepted_mass)


@exact
def rejection_queries(rows: Rows) -> float:
    """Return the expected number of model calls until rejection sampling accepts an output.

    For one question, this is the mean length of an unconstrained output divided by the probability that it satisfies
    the constraint. The geometric mean over all questions is returned.
    """
    return math.exp(_rejection(rows).queries.map(math.log).mean())


@prompt_sets
def gain_over_rejection(rows: Rows) -> "Series[float]":
    """Return the gain in effective samples per model call of weighted masked decoding over rejection sampling.

    The effective sample size accounts for unequal importance weights. The decimal logarithm of the ratio is averaged
    over the questions of each seed.
    """
    masked = rows.where("exact", rule="masked, weighted", size=1).set_index(["seed", "kind"]).ess_per_query
    table = _rejection(rows)
    gain = (masked / (table.accepted_mass / table.length)).map(math.log10)
    return gain.groupby("seed").mean()


@exact
def samples_over_rejection(rows: Rows) -> float:
    """Return the ratio of effective samples per model call, weighted masked decoding divided by rejection sampling.

    This is the geometric mean over all questions of the ratios in `gain_over_rejection`.
    """
    return float(10 ** gain_over_rejection()(rows).mean())


@exact
def unexplored(rows: Rows) -> float:
    """Return the largest probability that the enumeration of answers left unexplored, over all questions.

    The share is computed for the target and for masked decoding, and the larger one counts.
    """
    return float(rows["tree"][["unexplored_p", "unexplored_q"]].max().max())
