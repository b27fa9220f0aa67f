"""Statistics of the study, with one number per repetition, for either of the two models."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, Statistic
from trialogue_lab.studies.test_cases import decodings
from trialogue_lab.studies.test_cases.config import Role
from trialogue_lab.studies.test_cases.decodings import DecodingRule, Extent, extent_of

_MODEL = "the pretrained model of the run"
pretrained = {
    "all": Replication("training", "seeds", objects=_MODEL),
    "comparisons": Replication("training", "comparisons", objects=_MODEL),
    "plane": Replication("training", "planes", objects=_MODEL),
}
"""Replications by extent. Each has its own names, demonstrations, completions and verifiers."""
scratch = Replication("training", "scratch_seeds")
"""Replications that also have their own language model."""


def _statistic(
    role: Role, extent: Extent, compute: "Callable[..., Series[float]]", *args: object, **kwargs: object
) -> Statistic:
    replication = scratch if role == "scratch" else pretrained[extent]
    return replication(compute)(*args, **kwargs)


def _common_extent(first: DecodingRule, second: DecodingRule) -> Extent:
    """Return the extent whose repetitions measure both decodings."""
    return max(extent_of(first), extent_of(second), key=decodings.EXTENTS.index)


def _rows_of(rows: Rows, table: str, role: Role, extent: Extent) -> DataFrame:
    """Return the rows of the repetitions of an extent."""
    found = rows.where(table, model=role)
    if role == "scratch" or extent == "all":
        return found
    count = rows.config[pretrained[extent].count]
    return found[found.seed.isin(rows.config["seeds"][:count])]


def drawn(rows: Rows, decoding: str, column: str, role: Role, extent: Extent) -> "Series[float]":
    """Return the values of a column for the decoding with a name, by repetition of an extent."""
    table = _rows_of(rows, "draw", role, extent)
    return table[table.decoding == decoding].set_index("seed")[column]


def measured(
    decoding: DecodingRule,
    column: str = "accuracy_distinct",
    role: Role = "pretrained",
    extent: Extent | None = None,
) -> Statistic:
    """Value of a column for a decoding, in the repetitions of an extent (default: the decoding's extent)."""
    extent = extent or extent_of(decoding)
    return _statistic(role, extent, drawn, decoding.name, column, role, extent)


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
    """Value of a column for the first decoding minus the value for the second one."""
    extent = _common_extent(first, second)
    return measured(first, column, role, extent) - measured(second, column, role, extent)


def gain_per_query(first: DecodingRule, second: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Distinct correct cases per 100 queries for the first decoding minus those for the second one."""
    extent = _common_extent(first, second)
    return per_query(first, role, extent) - per_query(second, role, extent)


def ratio(first: DecodingRule, second: DecodingRule, column: str, role: Role = "pretrained") -> Statistic:
    """Value of a column for the first decoding divided by the value for the second one."""
    extent = _common_extent(first, second)
    return measured(first, column, role, extent) / measured(second, column, role, extent)


def gain_of_depth(role: Role = "pretrained") -> Statistic:
    """Mean distinct accuracy for verifiers of 2, 4 and 8 layers minus the distinct accuracy for one layer."""
    second, fourth, eighth = (
        measured(replace(decodings.TRAINED, depth=depth), role=role) for depth in (2, 4, 8)
    )
    return (second + fourth + eighth) / 3 - measured(decodings.TRAINED, role=role, extent="comparisons")


def gain_on_misleading(role: Role = "pretrained") -> Statistic:
    """Loss of distinct accuracy through misleading names, for nucleus sampling minus that for Algorithm 1."""
    of_trained, of_nucleus = (
        measured(rule, role=role, extent="comparisons") for rule in (decodings.TRAINED, decodings.BASELINE)
    )
    there = gain(
        decodings.out_of_distribution(decodings.TRAINED),
        decodings.out_of_distribution(decodings.BASELINE),
        role,
    )
    return there - (of_trained - of_nucleus)


def distinct_share(decoding: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Share of distinct cases among correct cases. It is 1 if no case is correct."""

    def distinct(rows: Rows, decoding: str, role: Role) -> "Series[float]":
        found, correct = (
            drawn(rows, decoding, column, role, "all") for column in ("distinct_correct", "correct")
        )
        return (found / correct.where(correct > 0)).fillna(1.0)

    return _statistic(role, "all", distinct, decoding.name, role)


def lead_of_best(role: Role = "pretrained") -> Statistic:
    """Distinct accuracy at (0.95, 1) minus that at the best other setting, as chosen by the other repetitions."""

    def lead(rows: Rows, role: Role) -> "Series[float]":
        table = _rows_of(rows, "draw", role, "plane").pivot(
            index="seed", columns="decoding", values="accuracy_distinct"
        )
        if len(table) < 2:
            raise NoRows("a single repetition has no other repetitions that choose a setting")
        own = table[decodings.BASELINE.name].to_numpy(dtype=float)
        names = [rule.name for rule in (*decodings.PLANE, decodings.GREEDY) if rule != decodings.BASELINE]
        others = table[names].to_numpy(dtype=float)
        chosen = [np.delete(others, place, 0).mean(0).argmax() for place in range(len(own))]
        return Series(own - others[np.arange(len(own)), chosen], index=table.index)

    return _statistic(role, "plane", lead, role)


def validation(role: Role, /, **values: object) -> Statistic:
    """Validation accuracy of the probes with the given values in their columns."""

    def validated(rows: Rows, /, role: Role, **values: object) -> "Series[float]":
        return rows.where("probe", model=role, **values).groupby("seed").validation_accuracy.mean()

    return _statistic(role, "all", validated, role, **values)


def timed(decoding: str, column: str, role: Role = "pretrained") -> Statistic:
    """Value of a column for completions that are generated one at a time.

    A further column is "milliseconds", the processor time per query.
    """

    def spent(rows: Rows, decoding: str, column: str, role: Role) -> "Series[float]":
        table = _rows_of(rows, "speed", role, "comparisons")
        table = table[table.decoding == decoding].set_index("seed")
        return table.assign(milliseconds=1000 * table.cpu_seconds / table.queries)[column]

    return _statistic(role, "comparisons", spent, decoding, column, role)


def milliseconds(decoding: DecodingRule, role: Role = "pretrained") -> Statistic:
    """Processor time per query in milliseconds, for completions that are generated in batches."""
    spent, queries = (measured(decoding, column, role) for column in ("cpu_seconds", "queries"))
    return replace(spent * 1000 / queries, logarithmic=False)
