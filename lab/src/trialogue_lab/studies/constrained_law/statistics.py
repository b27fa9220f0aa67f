"""Statistics of the study: means over the questions of a seed, and means over all questions."""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, Statistic, exact

prompt_sets = Replication("prompt set", "seeds", objects="the model of the run")


@prompt_sets
def decoded(rows: Rows, measure: str, /, rule: str, column: str = "tv", **values: object) -> "Series[float]":
    """Return a number of a decoding method: "exact", "simulated" on the tree, or of a "run" on the model."""
    return rows.where(measure, rule=rule, **values).groupby("seed")[column].mean()


def as_run(rule: str, column: str = "tv") -> Statistic:
    """Return a number of a sampler that runs on the model."""
    return decoded("run", rule, column)


def weighted(size: int, column: str = "tv", **values: object) -> Statistic:
    """Return an exact number of a weighted draw from `size` masked outputs. Size 1 is masked decoding."""
    return decoded("exact", "masked, weighted", column, size=size, **values)


@prompt_sets
def best_weighted(rows: Rows) -> "Series[float]":
    """Return the total variation of a weighted draw from the largest number of masked outputs."""
    return weighted(int(rows["exact"]["size"].max()))(rows)


@prompt_sets
def gain_of_resampling_on_the_way(rows: Rows) -> "Series[float]":
    """Return the total variation of sequential Monte Carlo minus that of a weighted draw from as many outputs.

    Both are total variations of samples.
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
    """Return the expected model calls per output of rejection, as the geometric mean over questions."""
    return math.exp(_rejection(rows).queries.map(math.log).mean())


@prompt_sets
def gain_over_rejection(rows: Rows) -> "Series[float]":
    """Return log10 of the ratio of effective samples per model call, weighted masked outputs over rejection."""
    masked = rows.where("exact", rule="masked, weighted", size=1).set_index(["seed", "kind"]).ess_per_query
    table = _rejection(rows)
    gain = (masked / (table.accepted_mass / table.length)).map(math.log10)
    return gain.groupby("seed").mean()


@exact
def samples_over_rejection(rows: Rows) -> float:
    """Return the ratio of `gain_over_rejection`, as the geometric mean over questions."""
    return float(10 ** gain_over_rejection()(rows).mean())


@exact
def unexplored(rows: Rows) -> float:
    """Return the largest unexplored share of the conditional distribution or of masked decoding, over questions."""
    return float(rows["tree"][["unexplored_p", "unexplored_q"]].max().max())
