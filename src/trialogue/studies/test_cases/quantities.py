"""Quantities of the study: one number per repetition, of the model or, with `beside`, of the surrogate."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from pandas import DataFrame, Index, Series

from trialogue.ledger import Quantity, Replication, Rows
from trialogue.studies.test_cases.decodings import BASELINE, GRID, TRAINED, DecodingRule

_MODEL = "the model of the run"

repetitions = Replication("training", "seeds", objects=_MODEL)
"""Names, demonstrations, draws and verifiers of their own."""
surrogates = Replication("training", "surrogate_seeds")
"""The same, and a language model of their own."""
on_the_grid = Replication("training", "grids", objects=_MODEL)
timed = Replication("training", "timed", objects=_MODEL)

Statistic = Callable[[Rows], "Series[float]"]


def _by_setup(name: str, statistic: Callable[[Rows, bool], "Series[float]"], beside: bool) -> Quantity:
    words = f"beside {name}" if beside else name
    return Quantity(words, lambda rows: statistic(rows, beside), surrogates if beside else repetitions)


def measured(decoding: DecodingRule, column: str = "accuracy_distinct", beside: bool = False) -> Quantity:
    """A number of the whole of each repetition with `decoding`."""
    return _by_setup(f"drawn({decoding.name}, {column})", partial(_whole, decoding.name, column), beside)


def _whole(decoding: str, column: str, rows: Rows, beside: bool) -> "Series[float]":
    return rows.where("draw", decoding=decoding, whole=True, beside=beside).set_index("seed")[column]


def per_query(decoding: DecodingRule, beside: bool = False) -> Quantity:
    """Distinct correct cases per 100 queries."""
    correct = measured(decoding, "distinct_correct", beside)
    return replace(correct * 100 / measured(decoding, "queries", beside), logarithmic=False)


def gain(first: DecodingRule, second: DecodingRule, beside: bool = False) -> Quantity:
    """Distinct accuracy of the first decoding less that of the second, of the repetitions that drew both."""
    return _complete(measured(first, beside=beside) - measured(second, beside=beside))


def gain_of_depth(beside: bool = False) -> Quantity:
    """Mean distinct accuracy with deeper verifiers less that with one of one layer."""
    second, fourth, eighth = (measured(replace(TRAINED, depth=depth), beside=beside) for depth in (2, 4, 8))
    return _complete((second + fourth + eighth) * (1 / 3) - measured(TRAINED, beside=beside))


def _complete(quantity: Quantity) -> Quantity:
    def statistic(rows: Rows) -> "Series[float]":
        estimates = quantity(rows).dropna()
        if estimates.empty:
            raise LookupError(quantity.absence(rows) or quantity.name)
        return estimates

    return replace(quantity, statistic=statistic)


def slope(decoding: DecodingRule, beside: bool = False) -> Quantity:
    """Slope of the line through a repetition's dots in Figure 3.3: distinct correct cases per 100 queries.

    By least squares, over what is counted after 1, 2, ... runs of each name.
    """
    return _by_setup(f"slope({decoding.name})", partial(_slope, decoding.name), beside)


def _slope(decoding: str, rows: Rows, beside: bool) -> "Series[float]":
    dots = rows.where("draw", decoding=decoding, beside=beside)

    def fitted(own: DataFrame) -> float:
        return float(100 * np.polyfit(own.queries, own.distinct_correct, 1)[0]) if len(own) > 1 else np.nan

    return Series({seed: fitted(own) for seed, own in dots.groupby("seed")}, dtype=float)


def repeated(decoding: DecodingRule, beside: bool = False) -> Quantity:
    """Correct cases that were written before, per case asked for: accuracy less distinct accuracy."""
    return measured(decoding, "accuracy", beside) - measured(decoding, beside=beside)


@on_the_grid
def lead_on_the_grid(rows: Rows) -> "Series[float]":
    """Distinct accuracy at top-p 0.95 and T = 1 less that of its best rival among the settings of Table 3.13.

    The rival of a repetition is the setting that is best on average over the other repetitions, so that its lead is
    not what it was chosen for.
    """
    drawn = rows.where("draw", whole=True, beside=False)
    table = drawn[drawn.decoding.isin([rule.name for rule in GRID])].pivot_table(
        "accuracy_distinct", "seed", "decoding"
    )
    table = table.dropna()
    if table.shape[1] < len(GRID) or len(table) < 2:
        raise LookupError("the settings of Table 3.13 in two or more repetitions")
    rivals = table.drop(columns=BASELINE.name)
    others = (rivals.sum() - rivals) / (len(rivals) - 1)
    chosen = others.idxmax(axis=1)
    best = rivals.to_numpy()[np.arange(len(rivals)), rivals.columns.get_indexer(Index(chosen))]
    return table[BASELINE.name] - best


@timed
def seconds_per_query(rows: Rows, decoding: str, at_once: int) -> "Series[float]":
    """CPU seconds of one thread per query, at the full length."""
    own = rows.where("time", decoding=decoding, at_once=at_once)
    own = own[own.tokens == own.tokens.max()].set_index("seed")
    return own.cpu_seconds / own.queries


@timed
def tracking(rows: Rows, at_once: int) -> "Series[float]":
    """Correlation of the logarithms of seconds and queries over nucleus sampling and Algorithm 1 at three lengths."""
    own = rows.where("time", at_once=at_once)
    own = own[own.decoding.isin([BASELINE.name, TRAINED.name])]
    return Series(
        {
            seed: float(np.corrcoef(np.log(each.queries), np.log(each.cpu_seconds))[0, 1])
            for seed, each in own.groupby("seed")
        },
        dtype=float,
    )


def validation(beside: bool = False, /, **values: object) -> Quantity:
    """Validation accuracy of the probes whose columns have these values."""
    name = ", ".join(f"{column}={value}" for column, value in values.items())

    def statistic(rows: Rows, of: bool) -> "Series[float]":
        return rows.where("probe", beside=of, **values).groupby("seed").validation_accuracy.mean()

    return _by_setup(f"validation({name})", statistic, beside)
