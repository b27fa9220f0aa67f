"""Quantities of the study: per drawn oracle, means over the tasks of the ladder.

The hidden string stands apart: its oracle is made for the rule, not drawn as the others are.
"""

import math
from typing import NamedTuple

from pandas import DataFrame, Series
from scipy.stats import spearmanr

from trialogue_lab.ledger import Replication, Rows, Statistic
from trialogue_lab.ledger.claims.extremes import RESOLVED
from trialogue_lab.studies.decoding_laws.rules import MASK, NO_RULE
from trialogue_lab.studies.decoding_laws.tasks import HIDDEN, VARYING
from trialogue_lab.studies.decoding_laws.verdicts import Shown

oracles = Replication("draw", "seeds")
TASK = ["family", "length"]
_DIGITS = 9
"""Decimals to which tasks are ranked: what is equal but for rounding is a tie."""


def _ladder(rows: Rows, kind: str, **values: object) -> DataFrame:
    table = rows.where(kind, **values)
    return table[table.family != HIDDEN]


@oracles
def decoded(rows: Rows, rule: str, column: str = "variation") -> "Series[float]":
    """A number of a decoding rule: by default the total variation to the law that its users believe they sample."""
    table = _ladder(rows, "rule", rule=rule)
    return resolved(table[column]).groupby(table.seed).mean()


@oracles
def at_varying_lengths(rows: Rows, rule: str) -> "Series[float]":
    """The total variation of a decoding rule to the believed law on the tasks whose outputs have no one length."""
    table = _ladder(rows, "rule", rule=rule)
    table = table[table.family.isin(VARYING)]
    return resolved(table.variation).groupby(table.seed).mean()


@oracles
def on_task(rows: Rows, rule: str, family: str, length: int) -> "Series[float]":
    """Total variation of a decoding rule to the believed law on one task."""
    table = rows.where("rule", rule=rule, family=family, length=length)
    return resolved(table.variation).groupby(table.seed).mean()


def resolved(numbers: "Series[float]") -> "Series[float]":
    """`numbers`, of which what may be rounding is 0."""
    return numbers.mask(numbers < RESOLVED, 0.0)


@oracles
def queries(rows: Rows, rule: str) -> "Series[float]":
    """Expected queries of a run over those of one that nothing rules, geometric mean over tasks."""
    table = _ladder(rows, "rule").set_index(["seed", *TASK])[["rule", "queries"]]
    asked, free = (table[table.rule == name].queries.astype(float) for name in (rule, NO_RULE))
    if asked.empty:
        return Series(dtype=float)
    ratio = (asked / free.reindex(asked.index)).map(math.log)
    return ratio.groupby("seed").mean().map(math.exp)


def price(rule: str) -> Statistic:
    """Expected queries of a run over those of one that nothing rules: geometric means over tasks where runs end."""
    return queries(rule).as_ratio()


@oracles
def growth(rows: Rows, rule: str) -> "Series[float]":
    """How much further a decoding rule is at the greater length of each family, mean over families."""
    table = _ladder(rows, "rule", rule=rule).sort_values("length")
    by_length = table.groupby(["seed", "family"]).variation
    return (by_length.last() - by_length.first()).groupby("seed").mean()


@oracles
def order(rows: Rows, column: str) -> "Series[float]":
    """Rank correlation over the tasks of a number that a task shows with the distance of masked decoding."""
    far = _ladder(rows, "rule", rule=MASK).set_index(["seed", *TASK]).variation
    shown = _ladder(rows, "task").set_index(["seed", *TASK])[column]
    both = DataFrame({"far": far, "shown": shown.reindex(far.index)}).round(_DIGITS)
    return Series(
        {seed: float(spearmanr(own.far, own.shown).statistic) for seed, own in both.groupby("seed")}
    )


class ShownTask(NamedTuple):
    """What a task shows of itself (`verdicts.Shown`), means over drawn oracles."""

    family: str
    length: int
    shown: Shown

    @property
    def name(self) -> str:
        """Family and length."""
        return f"{self.family}, {self.length}"


def shown_tasks(rows: Rows, hidden: bool = True) -> list[ShownTask]:
    """The tasks in the order of their spread; where `hidden`, those of the hidden string as well, last."""
    table, tasks = rows["task"], []
    for family in table.family.unique().tolist():
        for length in table[table.family == family].length.unique().tolist():
            means = table[(table.family == family) & (table.length == length)][list(Shown._fields)].mean()
            if hidden or family != HIDDEN:
                tasks.append(ShownTask(family, length, Shown(*resolved(means).tolist())))
    return sorted(tasks, key=lambda task: (task.family == HIDDEN, task.shown.spread))
