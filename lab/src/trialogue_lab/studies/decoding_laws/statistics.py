"""Statistics of the study: one number per random model, as a mean over tasks.

The hidden string is excluded from all means, because its model is made for the constraint and not random.
"""

import math
from typing import Any, NamedTuple

from pandas import DataFrame, Series
from scipy.stats import spearmanr

from trialogue_lab.ledger import Replication, Rows, Statistic
from trialogue_lab.ledger.claims.extremes import RESOLVED
from trialogue_lab.studies.decoding_laws.difficulty import Difficulty
from trialogue_lab.studies.decoding_laws.methods import MASK, UNCONSTRAINED
from trialogue_lab.studies.decoding_laws.tasks import HIDDEN, VARYING

oracles = Replication("draw", "seeds")
TASK = ["family", "length"]
_DIGITS = 9
"""Decimals before ranking, so that numbers which differ by rounding errors are ties."""


def _random_models(rows: Rows, kind: str, **values: object) -> DataFrame:
    table = rows.where(kind, **values)
    return table[table.family != HIDDEN]


@oracles
def decoded(rows: Rows, rule: str, column: str = "variation") -> "Series[float]":
    """Return a column of a decoding method, by default the total variation to the expected distribution."""
    table = _random_models(rows, "rule", rule=rule)
    return resolved(table[column]).groupby(table.seed).mean()


@oracles
def at_varying_lengths(rows: Rows, rule: str) -> "Series[float]":
    """Return the total variation to the expected distribution on tasks whose outputs have several lengths."""
    table = _random_models(rows, "rule", rule=rule)
    table = table[table.family.isin(VARYING)]
    return resolved(table.variation).groupby(table.seed).mean()


@oracles
def on_task(rows: Rows, rule: str, family: str, length: int) -> "Series[float]":
    """Return the total variation to the expected distribution on one task."""
    table = rows.where("rule", rule=rule, family=family, length=length)
    return resolved(table.variation).groupby(table.seed).mean()


def resolved(numbers: "Series[float]") -> "Series[float]":
    """Return `numbers` with values below rounding error set to zero."""
    return numbers.mask(numbers < RESOLVED, 0.0)


@oracles
def queries(rows: Rows, rule: str) -> "Series[float]":
    """Return expected model calls relative to unconstrained sampling, as the geometric mean over tasks."""
    table = _random_models(rows, "rule").set_index(["seed", *TASK])[["rule", "queries"]]
    own, free = (table[table.rule == name].queries.astype(float) for name in (rule, UNCONSTRAINED))
    if own.empty:
        return Series(dtype=float)
    ratio = (own / free.reindex(own.index)).map(math.log)
    return ratio.groupby("seed").mean().map(math.exp)


def price(rule: str) -> Statistic:
    """Return `queries` as a ratio, over the tasks on which runs end."""
    return queries(rule).as_ratio()


@oracles
def growth(rows: Rows, rule: str) -> "Series[float]":
    """Return the increase of the total variation from the smaller to the greater length, as the mean over families."""
    table = _random_models(rows, "rule", rule=rule).sort_values("length")
    by_length = table.groupby(["seed", "family"]).variation
    return (by_length.last() - by_length.first()).groupby("seed").mean()


@oracles
def order(rows: Rows, column: str) -> "Series[float]":
    """Return the rank correlation over tasks between a difficulty measure and the distance of masked decoding."""
    index = ["seed", *TASK]
    far = _random_models(rows, "rule", rule=MASK).set_index(index).variation
    difficulty = _random_models(rows, "task").set_index(index)[column]
    both = DataFrame({"far": far, "difficulty": difficulty.reindex(far.index)}).round(_DIGITS)
    return Series(
        {seed: float(spearmanr(own.far, own.difficulty).statistic) for seed, own in both.groupby("seed")}
    )


class TaskDifficulty(NamedTuple):
    """The difficulty of a task, as the mean over random models."""

    family: str
    length: int
    difficulty: Difficulty

    @property
    def name(self) -> str:
        """Family and length."""
        return f"{self.family}, {self.length}"


def task_difficulties(rows: Rows, hidden: bool = True) -> list[TaskDifficulty]:
    """Return the tasks in ascending order of their spread, then the hidden string if `hidden`."""
    groups: Any = rows["task"].groupby(TASK, sort=False)[list(Difficulty._fields)].mean()
    tasks = [
        TaskDifficulty(family, length, Difficulty(*resolved(means)))
        for (family, length), means in groups.iterrows()
        if hidden or family != HIDDEN
    ]
    return sorted(tasks, key=lambda task: (task.family == HIDDEN, task.difficulty.spread))
