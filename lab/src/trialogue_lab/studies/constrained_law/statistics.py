"""Quantities of the study: means over the questions of a seed, and means over all questions."""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, Statistic, exact

prompt_sets = Replication("prompt set", "seeds", objects="the model of the run")


@prompt_sets
def decoded(rows: Rows, measure: str, /, rule: str, column: str = "tv", **values: object) -> "Series[float]":
    """A number of a decoding rule as it was measured: "exact", "simulated" on the tree, or a "run" on the model."""
    return rows.where(measure, rule=rule, **values).groupby("seed")[column].mean()


def as_run(rule: str, column: str = "tv") -> Statistic:
    """A number of a walk on the model itself."""
    return decoded("run", rule, column)


def weighted(size: int, column: str = "tv", **values: object) -> Statistic:
    """A number of what is drawn by weight among `size` masked samples, exactly; one is masked decoding."""
    return decoded("exact", "masked, weighted", column, size=size, **values)


@prompt_sets
def best_weighted(rows: Rows) -> "Series[float]":
    """Total variation of what is drawn by weight among the largest number of masked samples."""
    return weighted(int(rows["exact"]["size"].max()))(rows)


@prompt_sets
def gain_of_resampling_on_the_way(rows: Rows) -> "Series[float]":
    """Distance of sequential Monte Carlo less that of drawing by weight among as many, counts of outputs both."""
    particles = int(rows["simulated"]["size"].max())
    return (decoded("simulated", "smc", size=particles) - weighted(particles, "drawn_tv"))(rows)


def _rejection(rows: Rows) -> DataFrame:
    """Expected queries of an output of rejection, by seed and kind of rule."""
    questions = ["seed", "kind"]
    table = rows["tree"].set_index(questions)[["accepted_mass"]]
    table["length"] = rows.where("run", rule="no rule").set_index(questions).queries
    return table.assign(queries=table.length / table.accepted_mass)


@exact
def rejection_queries(rows: Rows) -> float:
    """Expected queries of an output of rejection: geometric mean over questions."""
    return math.exp(_rejection(rows).queries.map(math.log).mean())


@prompt_sets
def gain_over_rejection(rows: Rows) -> "Series[float]":
    """log10 of effective samples per query, of masked samples with their weights over rejection."""
    masked = rows.where("exact", rule="masked, weighted", size=1).set_index(["seed", "kind"]).ess_per_query
    table = _rejection(rows)
    gain = (masked / (table.accepted_mass / table.length)).map(math.log10)
    return gain.groupby("seed").mean()


@exact
def samples_over_rejection(rows: Rows) -> float:
    """How many times as many effective samples per query masked samples give: geometric mean over questions."""
    return float(10 ** gain_over_rejection()(rows).mean())


@exact
def unexplored(rows: Rows) -> float:
    """Share of the restricted law, or of masked decoding's, that was left unexplored: at most, over questions."""
    return float(rows["tree"][["unexplored_p", "unexplored_q"]].max().max())
