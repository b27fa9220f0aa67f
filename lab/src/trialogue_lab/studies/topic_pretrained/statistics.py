"""Quantities of the study: what measures are over pairs of words of one topic, beside other pairs."""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows
from trialogue_lab.studies.topic_pretrained.config import PUBLISHED

draws = Replication("draw", "seeds", objects="these texts and models")

PRETRAINED, RANDOM = "pretrained", "random"
LEAST_PAIRS = 30
"""So few pairs of either kind are not compared with pairs that are often together."""


def compared(
    rows: Rows, model: str, measure: str, *, single: bool = True, weights: str = PRETRAINED
) -> DataFrame:
    """The rows of a model and a measure: one for each draw, text and number of words."""
    table = rows.where("comparison", model=model, measure=measure, single=single, weights=weights)
    if table.empty:
        raise NoRows(f"no {measure} of {model} with {weights} weights")
    return table


def _mean(table: DataFrame, values: "Series[float]") -> "Series[float]":
    return values.groupby(table.seed).agg(lambda of: of.mean(skipna=False)).dropna()


def _log_ratio(table: DataFrame) -> "Series[float]":
    return _mean(table, (table.same / table.different).map(math.log))


@draws
def gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Same topic less different topics, the mean over texts and numbers of words, one topic a word.

    The least of them would be below zero by noise alone.
    """
    table = compared(rows, model, measure)
    return _mean(table, table.same - table.different)


@draws
def ratio(
    rows: Rows,
    model: str,
    measure: str,
    words: int | None = None,
    single: bool = True,
    weights: str = PRETRAINED,
) -> "Series[float]":
    """Same topic over different topics, the geometric mean over texts, and over all numbers of words if none is given.

    Draws in which a mean is not positive have none.
    """
    table = compared(rows, model, measure, single=single, weights=weights)
    table = table if words is None else table[table.words == words]
    if table.empty:
        raise NoRows(f"no topics of {words} words")
    positive = (table.same / table.different).where((table.same > 0) & (table.different > 0))
    return _mean(table, positive.map(math.log)).map(math.exp)


@draws
def mostly(rows: Rows, model: str, measures: tuple[str, ...]) -> Counts:
    """In how many combinations of text, number of words and measure same topic is larger, one or more topics a word."""
    table = rows.where("comparison", model=model, single=False, weights=PRETRAINED)
    table = table[table.measure.isin(measures)]
    if table.empty:
        raise NoRows(f"no rows of {model}")
    larger = (table.same > table.different).groupby(table.seed)
    return Counts(larger.sum(), larger.count())


@draws
def together_gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Same topic less as many pairs that are often together, the mean over texts and numbers of words.

    One topic a word. None where a text of any draw has fewer than 30 pairs, or the two are not as many.
    """
    table = compared(rows, model, measure)
    few = (table.same_pairs < LEAST_PAIRS) | (table.same_pairs != table.together_pairs)
    if few.any():
        raise NoRows(
            f"{few.sum()} of {len(few)} comparisons are of fewer than {LEAST_PAIRS} pairs, or of unequal numbers"
        )
    return _mean(table, table.same - table.together)


@draws
def level(rows: Rows, model: str, measure: str, pairs: str, words: int) -> "Series[float]":
    """The mean of a measure over pairs of a class (a column of the rows), over texts, one topic a word."""
    table = compared(rows, model, measure)
    table = table[table.words == words]
    return _mean(table, table[pairs])


@draws
def fall(rows: Rows, model: str, measure: str) -> "Series[float]":
    """The ratio for the fewest words over that for the most."""
    table = compared(rows, model, measure)
    few, many = (table[table.words == count] for count in (table.words.min(), table.words.max()))
    return (_log_ratio(few) - _log_ratio(many)).map(math.exp)


@draws
def beyond_random(rows: Rows, model: str, measure: str) -> "Series[float]":
    """The ratio of the pretrained model over that of its architecture with random weights, in the first text."""
    control = compared(rows, model, measure, weights=RANDOM)
    table = compared(rows, model, measure)
    table = table[table.text.isin(control.text)]
    return (_log_ratio(table) - _log_ratio(control)).dropna().map(math.exp)


@draws
def published_gain(rows: Rows, measure: str) -> "Series[float]":
    """Same topic less different topics, the mean over all of the source's models, texts and numbers of words."""
    tables = [compared(rows, model, measure) for model in PUBLISHED]
    return DataFrame([_mean(table, table.same - table.different) for table in tables]).mean()


@draws
def several(rows: Rows, model: str, text: str) -> "Series[float]":
    """The share of the occurrences of words that are more than one token."""
    table = rows.where("words", model=model, text=text)
    if table.empty:
        raise NoRows(f"no words of {model} in {text}")
    return (table.several / table.occurrences).set_axis(table.seed)
