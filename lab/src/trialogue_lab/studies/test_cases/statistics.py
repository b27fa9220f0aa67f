"""Quantities of the study: one number per repetition, with either of the two models."""

from dataclasses import replace

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, Statistic
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    EXTENTS,
    GREEDY,
    PLANE,
    TRAINED,
    DecodingRule,
    Extent,
    extent_of,
    out_of_distribution,
)

_MODEL = "the pretrained model of the run"
pretrained = {
    "all": Replication("training", "seeds", objects=_MODEL),
    "comparisons": Replication("training", "comparisons", objects=_MODEL),
    "plane": Replication("training", "planes", objects=_MODEL),
}
"""Names, demonstrations, draws and verifiers of their own, by the repetitions that hold a decoding."""
scratch = Replication("training", "scratch_seeds")
"""The same with a language model of their own."""


def _replication(role: Role, extent: Extent) -> Replication:
    return scratch if role == "scratch" else pretrained[extent]


def _common(first: DecodingRule, second: DecodingRule) -> Extent:
    """Return the extent whose repetitions draw both decodings."""
    return max(extent_of(first), extent_of(second), key=EXTENTS.index)


def _of(rows: Rows, table: str, role: Role, extent: Extent) -> DataFrame:
    """The rows of the repetitions of an extent."""
    found = rows.where(table, model=role)
    count = None if role == "scratch" or extent == "all" else rows.config[pretrained[extent].count]
    return found if count is None else found[found.seed.isin(rows.config["seeds"][:count])]


def drawn(rows: Rows, decoding: str, column: str, role: Role, extent: Extent) -> "Series[float]":
    """Return a number of each repetition of an extent with the decoding of this name."""
    table = _of(rows, "draw", role, extent)
    return table[table.decoding == decoding].set_index("seed")[column]


def measured(
    decoding: DecodingRule,
    column: str = "accuracy_distinct",
    role: Role = "pretrained",
    extent: Extent | None = None,
) -> Statistic:
    """A number of each repetition with `decoding`, in the repetitions of an extent: by default its own."""
    among = extent or extent_of(decoding)
    return _replication(role, among)(drawn)(decoding.name, column, role, among)


def per_query(decoding: DecodingRule, role: Role = "pretrained", extent: Extent | None = None) -> Statistic:
    """Distinct correct cases per 100 queries."""
    correct, queries = (
        measured(decoding, column, role, extent) for column in ("distinct_correct", "queries")
    )
    return replace(correct * 100 / queries, logarithmic=False)


def gain(
    first: DecodingRule,
    second: DecodingRule,
    role: Role = "pretrained",
    column: str = "accuracy_distinct",
) -> Statistic:
    """A number with the first decoding less that with the second, by default distinct accuracy."""
    among = _common(first, second)
    return measured(first, column, role, among) - measured(second, column, role, among)


def gain_per_query(first: DecodingRule, second: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Distinct correct cases per 100 queries with the first decoding less those with the second."""
    among = _common(first, second)
    return per_query(first, role, among) - per_query(second, role, among)


def ratio(first: DecodingRule, second: DecodingRule, column: str, role: Role = "pretrained") -> Statistic:
    """A number with the first decoding over that with the second."""
    among = _common(first, second)
    return measured(first, column, role, among) / measured(second, column, role, among)


def gain_of_depth(role: Role = "pretrained") -> Statistic:
    """Mean distinct accuracy with verifiers of 2, 4 and 8 layers less that with those of one."""
    second, fourth, eighth = (measured(replace(TRAINED, depth=depth), role=role) for depth in (2, 4, 8))
    return (second + fourth + eighth) / 3 - measured(TRAINED, role=role, extent="comparisons")


def gain_on_misleading(role: Role = "pretrained") -> Statistic:
    """What misleading names cost nucleus sampling less what they cost Algorithm 1, in distinct accuracy."""
    of_trained, of_nucleus = (measured(rule, role=role, extent="comparisons") for rule in (TRAINED, BASELINE))
    there = gain(out_of_distribution(TRAINED), out_of_distribution(BASELINE), role)
    return there - (of_trained - of_nucleus)


def distinct_share(decoding: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Share of the correct cases that are distinct; 1 where no case is correct."""

    def distinct(rows: Rows, decoding: str, role: Role) -> "Series[float]":
        found, correct = (
            drawn(rows, decoding, column, role, "all") for column in ("distinct_correct", "correct")
        )
        return (found / correct.where(correct > 0)).fillna(1.0)

    return _replication(role, "all")(distinct)(decoding.name, role)


def lead_of_best(role: Role = "pretrained") -> Statistic:
    """Distinct accuracy at (0.95, 1) less that of the best other setting, as other repetitions choose it."""

    def lead(rows: Rows, role: Role) -> "Series[float]":
        table = _of(rows, "draw", role, "plane")
        names = [rule.name for rule in (*PLANE, GREEDY)]
        grid = table[table.decoding.isin(names)].pivot(
            index="seed", columns="decoding", values="accuracy_distinct"
        )
        if len(grid) < 2:
            raise NoRows("a single repetition has no others to choose a setting")
        own = grid[BASELINE.name].to_numpy(dtype=float)
        others = grid[names].drop(columns=BASELINE.name).to_numpy(dtype=float)
        chosen = [np.delete(others, place, 0).mean(0).argmax() for place in range(len(own))]
        return Series(own - others[np.arange(len(own)), chosen], index=grid.index)

    return _replication(role, "plane")(lead)(role)


def validation(role: Role, /, **values: object) -> Statistic:
    """Validation accuracy of the probes whose columns have these values."""

    def validated(rows: Rows, /, role: Role, **values: object) -> "Series[float]":
        return rows.where("probe", model=role, **values).groupby("seed").validation_accuracy.mean()

    return _replication(role, "all")(validated)(role, **values)


def timed(decoding: str, column: str, role: Role = "pretrained") -> Statistic:
    """A number of completions that are drawn one at a time; `milliseconds` are of the processor, per query."""

    def spent(rows: Rows, decoding: str, column: str, role: Role) -> "Series[float]":
        table = _of(rows, "speed", role, "comparisons")
        table = table[table.decoding == decoding].set_index("seed")
        return table.assign(milliseconds=1000 * table.cpu_seconds / table.queries)[column]

    return _replication(role, "comparisons")(spent)(decoding, column, role)


def milliseconds(decoding: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Processor milliseconds per query where all completions of the repetitions that share a model move at once."""
    spent, queries = (measured(decoding, column, role) for column in ("cpu_seconds", "queries"))
    return replace(spent * 1000 / queries, logarithmic=False)
