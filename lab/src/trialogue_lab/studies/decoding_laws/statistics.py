"""Statistics of the study about output distributions of decoding methods under small constraints.

A task is a constraint on strings with a maximum length. Every seed gives one random language model per task. Statistics
are averages over the tasks of a seed. The task "hidden string" is excluded from averages, because its model is built
for the constraint and not random.
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
"""Number of decimals to which numbers are rounded before ranking, so that rounding errors cause no order."""


def _select_random_models(rows: Rows, kind: str, **values: object) -> DataFrame:
    table = rows.where(kind, **values)
    return table[table.family != HIDDEN]


@oracles
def decoded(rows: Rows, rule: str, column: str = "variation") -> "Series[float]":
    """Return a measurement of one decoding method, averaged over constraints on strings.

    For each seed and constraint, the output distribution of the method is computed exactly for a small random language
    model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the decoding method, for example "rejection" or "mask" (masked decoding).
        column: Column to average. The default "variation" is the total variation distance between the output
            distribution and the expected distribution. For most methods, the expected distribution is the model given
            the constraint.

    Returns:
        One mean per seed. Numbers below rounding error count as zero.
    """
    table = _select_random_models(rows, "rule", rule=rule)
    return zero_rounding_errors(table[column]).groupby(table.seed).mean()


@oracles
def at_varying_lengths(rows: Rows, rule: str) -> "Series[float]":
    """Return the error of a decoding method, averaged over constraints that allow strings of varying length.

    The error is the total variation distance between the output distribution and the distribution that users
    expect.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the decoding method, for example "rejection" or "mask" (masked decoding).

    Returns:
        One mean per seed of the random language models.
    """
    table = _select_random_models(rows, "rule", rule=rule)
    table = table[table.family.isin(VARYING)]
    return zero_rounding_errors(table.variation).groupby(table.seed).mean()


@oracles
def on_task(rows: Rows, rule: str, family: str, length: int) -> "Series[float]":
    """Return the distance of a decoding method from its target under one constraint.

    The distance is the total variation between the output distribution and the target. For most methods, the target is
    the language model's distribution given the constraint.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the decoding method, for example "rejection" or "mask" (masked decoding).
        family: Name of the constraint, for example "palindrome".
        length: Maximum length of the strings in tokens.

    Returns:
        One distance per seed of the random language models.
    """
    table = rows.where("rule", rule=rule, family=family, length=length)
    return zero_rounding_errors(table.variation).groupby(table.seed).mean()


def zero_rounding_errors(numbers: "Series[float]") -> "Series[float]":
    """Set numbers below rounding error to zero.

    Args:
        numbers: Numbers computed in floating point, for example distances.
    """
    return numbers.mask(numbers < RESOLVED, 0.0)


@oracles
def queries(rows: Rows, rule: str) -> "Series[float]":
    """Return the expected number of model calls of a decoding method, relative to sampling without a constraint.

        ratio = (expected calls of the method) / (expected calls of sampling without a constraint)

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the decoding method, for example "rejection" or "mask" (masked decoding).

    Returns:
        One geometric mean over constraints per seed of the random language models. It is empty if the method was not
        measured.
    """
    table = _select_random_models(rows, "rule").set_index(["seed", *TASK])[["rule", "queries"]]
    own, free = (table[table.rule == name].queries.astype(float) for name in (rule, UNCONSTRAINED))
    if own.empty:
        return Series(dtype=float)
    ratio = (own / free.reindex(own.index)).map(math.log)
    return ratio.groupby("seed").mean().map(math.exp)


def relative_model_calls(rule: str) -> Statistic:
    """Return the statistic `queries` of a decoding method, with geometric means over seeds.

    The statistic is the expected number of model calls, divided by that of sampling without a constraint. Constraints
    with an infinite expectation are omitted.

    Args:
        rule: Name of the decoding method, for example "rejection" or "mask" (masked decoding).

    Returns:
        Function from the measurements of a run to one ratio per seed of the random language models.
    """
    return queries(rule).as_ratio()


@oracles
def growth(rows: Rows, rule: str) -> "Series[float]":
    """Return how much the error of a decoding method increases with the maximum length of the strings.

        increase = error(greater maximum length) - error(smaller maximum length)

    Strings are sampled from small random language models under constraints. The error is the total variation distance
    between the output distribution and the distribution that users expect.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the decoding method, for example "rejection" or "mask" (masked decoding).

    Returns:
        One mean over constraints per seed of the random language models.
    """
    table = _select_random_models(rows, "rule", rule=rule).sort_values("length")
    by_length = table.groupby(["seed", "family"]).variation
    return (by_length.last() - by_length.first()).groupby("seed").mean()


@oracles
def order(rows: Rows, column: str) -> "Series[float]":
    """Return the Spearman correlation between the difficulty of a constraint and the error of masked decoding.

    Masked decoding never samples a forbidden token. Its error is the total variation distance of its output from the
    model's distribution given the constraint. Each constraint and maximum length is one data point.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Measure of the difficulty, a field of `Difficulty`. For example, "mass" is the probability that the
            model's output is valid.

    Returns:
        One correlation per seed of the random language models.
    """
    index = ["seed", *TASK]
    far = _select_random_models(rows, "rule", rule=MASK).set_index(index).variation
    difficulty = _select_random_models(rows, "task").set_index(index)[column]
    both = DataFrame({"x": difficulty.reindex(far.index), "y": far}).round(_DIGITS)
    return Series({seed: float(spearmanr(own.x, own.y).statistic) for seed, own in both.groupby("seed")})


class TaskDifficulty(NamedTuple):
    """Difficulty of a constraint on strings with a maximum length, averaged over random language models.

    Attributes:
        family: Name of the constraint.
        length: Maximum length of the strings in tokens.
        difficulty: Mean of every measure of the difficulty.
    """

    family: str
    length: int
    difficulty: Difficulty

    @property
    def name(self) -> str:
        """Name of the constraint and maximum length, for example "palindrome, 4"."""
        return f"{self.family}, {self.length}"


def average_task_difficulties(rows: Rows, hidden: bool = True) -> list[TaskDifficulty]:
    """Return the mean difficulty of every constraint on strings and maximum length, easiest first.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        hidden: Whether to include the constraint "hidden string". Its language model is built for it and not random.

    Returns:
        Difficulties in ascending order of the measure `spread`, followed by the constraint "hidden string".
    """
    groups: Any = rows["task"].groupby(TASK, sort=False)[list(Difficulty._fields)].mean()
    tasks = [
        TaskDifficulty(family, length, Difficulty(*zero_rounding_errors(means)))
        for (family, length), means in groups.iterrows()
        if hidden or family != HIDDEN
    ]
    return sorted(tasks, key=lambda task: (task.family == HIDDEN, task.difficulty.spread))
