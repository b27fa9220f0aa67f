"""Statistics of the study about output distributions of decoding methods on small constraints.

A task is a constraint on strings with a maximum length. Every seed draws a random model per task, and each statistic
averages over the tasks of a seed. The task "hidden string" is excluded from averages, because its model is built for
the constraint and not random.
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
    """Return the mean of a column over the tasks of each seed, for one decoding method.

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the decoding method, a key of `METHODS`.
        column: Column to average. The default "variation" is the total variation distance between the output
            distribution and the distribution that users of the method expect.

    Returns:
        One mean per seed. Distances below rounding error count as zero.
    """
    table = _random_models(rows, "rule", rule=rule)
    return resolved(table[column]).groupby(table.seed).mean()


@oracles
def at_varying_lengths(rows: Rows, rule: str) -> "Series[float]":
    """Return the mean distance of a decoding method on the tasks whose valid strings differ in length.

    The distance is the total variation between the output distribution and the distribution that users of the method
    expect.

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the decoding method, a key of `METHODS`.

    Returns:
        One mean over these tasks per seed of the random models.
    """
    table = _random_models(rows, "rule", rule=rule)
    table = table[table.family.isin(VARYING)]
    return resolved(table.variation).groupby(table.seed).mean()


@oracles
def on_task(rows: Rows, rule: str, family: str, length: int) -> "Series[float]":
    """Return the distance of a decoding method on one task.

    The distance is the total variation between the output distribution and the distribution that users of the method
    expect.

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the decoding method, a key of `METHODS`.
        family: Name of the constraint, for example "palindrome".
        length: Maximum length of the strings.

    Returns:
        One distance per seed of the random models.
    """
    table = rows.where("rule", rule=rule, family=family, length=length)
    return resolved(table.variation).groupby(table.seed).mean()


def resolved(numbers: "Series[float]") -> "Series[float]":
    """Return `numbers` with values below rounding error set to zero."""
    return numbers.mask(numbers < RESOLVED, 0.0)


@oracles
def queries(rows: Rows, rule: str) -> "Series[float]":
    """Return the expected model calls of a decoding method, divided by the calls of sampling without a constraint.

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the decoding method, a key of `METHODS`.

    Returns:
        One geometric mean of the ratios over tasks per seed of the random models.
    """
    table = _random_models(rows, "rule").set_index(["seed", *TASK])[["rule", "queries"]]
    own, free = (table[table.rule == name].queries.astype(float) for name in (rule, UNCONSTRAINED))
    if own.empty:
        return Series(dtype=float)
    ratio = (own / free.reindex(own.index)).map(math.log)
    return ratio.groupby("seed").mean().map(math.exp)


def price(rule: str) -> Statistic:
    """Return the statistic `queries` of a decoding method, averaged geometrically over seeds.

    Tasks on which the expected number of model calls is infinite are omitted.
    """
    return queries(rule).as_ratio()


@oracles
def growth(rows: Rows, rule: str) -> "Series[float]":
    """Return how much the distance of a decoding method increases from short strings to long strings.

    Every constraint is measured at two maximum lengths. The distance is the total variation between the output
    distribution and the distribution that users of the method expect.

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the decoding method, a key of `METHODS`.

    Returns:
        One mean increase over constraints per seed of the random models.
    """
    table = _random_models(rows, "rule", rule=rule).sort_values("length")
    by_length = table.groupby(["seed", "family"]).variation
    return (by_length.last() - by_length.first()).groupby("seed").mean()


@oracles
def order(rows: Rows, column: str) -> "Series[float]":
    """Return the Spearman correlation, over tasks, between a measure of difficulty and the distance of masked decoding.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the measure, a field of `Difficulty`.

    Returns:
        One correlation per seed of the random models.
    """
    index = ["seed", *TASK]
    far = _random_models(rows, "rule", rule=MASK).set_index(index).variation
    difficulty = _random_models(rows, "task").set_index(index)[column]
    both = DataFrame({"far": far, "difficulty": difficulty.reindex(far.index)}).round(_DIGITS)
    return Series(
        {seed: float(spearmanr(own.far, own.difficulty).statistic) for seed, own in both.groupby("seed")}
    )


class TaskDifficulty(NamedTuple):
    """The difficulty of a task, averaged over random models.

    Attributes:
        family: Name of the constraint.
        length: Maximum length of the strings.
        difficulty: Mean of every measure of difficulty.
    """

    family: str
    length: int
    difficulty: Difficulty

    @property
    def name(self) -> str:
        """Name of the constraint and maximum length, for example "palindrome, 4"."""
        return f"{self.family}, {self.length}"


def task_difficulties(rows: Rows, hidden: bool = True) -> list[TaskDifficulty]:
    """Return the mean difficulty of every task in ascending order of `Difficulty.spread`.

    Args:
        rows: Measured rows of a run, by kind.
        hidden: Whether to append the task "hidden string", whose model is not random.
    """
    groups: Any = rows["task"].groupby(TASK, sort=False)[list(Difficulty._fields)].mean()
    tasks = [
        TaskDifficulty(family, length, Difficulty(*resolved(means)))
        for (family, length), means in groups.iterrows()
        if hidden or family != HIDDEN
    ]
    return sorted(tasks, key=lambda task: (task.family == HIDDEN, task.difficulty.spread))
