"""Statistics of the study: measures of pairs of words of one topic, compared with other pairs."""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows
from trialogue_lab.studies.topic_pretrained.config import PUBLISHED

draws = Replication("draw", "seeds", objects="these texts and models")

PRETRAINED, RANDOM = "pretrained", "random"
MIN_PAIRS = 30
"""Smallest number of pairs of each kind that are compared with pairs that often occur together"""


def compared(
    rows: Rows, model: str, measure: str, *, single: bool = True, weights: str = PRETRAINED
) -> DataFrame:
    """Return the rows of a model and a measure, one for each seed, text and number of words.

    With `single`, every word has one topic, otherwise one or more. Raises `NoRows` if no row matches.
    """
    table = rows.where("comparison", model=model, measure=measure, single=single, weights=weights)
    if table.empty:
        raise NoRows(f"no {measure} of {model} with {weights} weights")
    return table


def _mean(table: DataFrame, values: "Series[float]") -> "Series[float]":
    return values.groupby(table.seed).agg(lambda group: group.mean(skipna=False)).dropna()


def _log_ratio(table: DataFrame) -> "Series[float]":
    return _mean(table, (table.same / table.different).map(math.log))


@draws
def gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return same topic minus different topics, as a mean over texts and numbers of words, with one topic per word.

    A minimum instead of the mean would be below zero because of noise alone.
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
    """Return the ratio of same topic to different topics, as a geometric mean over texts.

    Without a number of words, the mean is also over all numbers. A seed with a mean that is not positive has no ratio.
    """
    table = compared(rows, model, measure, single=single, weights=weights)
    table = table if words is None else table[table.words == words]
    if table.empty:
        raise NoRows(f"no topics of {words} words")
    positive = (table.same / table.different).where((table.same > 0) & (table.different > 0))
    return _mean(table, positive.map(math.log)).map(math.exp)


@draws
def mostly(rows: Rows, model: str, measures: tuple[str, ...]) -> Counts:
    """Count the combinations of text, number of words and measure in which the same-topic mean is larger.

    A word may have several topics.
    """
    table = rows.where("comparison", model=model, single=False, weights=PRETRAINED)
    table = table[table.measure.isin(measures)]
    if table.empty:
        raise NoRows(f"no rows of {model}")
    larger = (table.same > table.different).groupby(table.seed)
    return Counts(larger.sum(), larger.count())


@draws
def together_gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return same topic minus pairs that often occur together, as a mean over texts and numbers of words.

    Each word has one topic. Raises `NoRows` if a text of any sample has fewer than 30 pairs, or if the numbers of pairs
    of both kinds differ.
    """
    table = compared(rows, model, measure)
    few = (table.same_pairs < MIN_PAIRS) | (table.same_pairs != table.together_pairs)
    if few.any():
        raise NoRows(
            f"{few.sum()} of {len(few)} comparisons have fewer than {MIN_PAIRS} pairs, or unequal numbers"
        )
    return _mean(table, table.same - table.together)


@draws
def level(rows: Rows, model: str, measure: str, pairs: str, words: int) -> "Series[float]":
    """Return the mean of a measure over pairs of a class (a column of the rows) and texts, with one topic per word."""
    table = compared(rows, model, measure)
    table = table[table.words == words]
    return _mean(table, table[pairs])


@draws
def fall(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return the ratio for the smallest number of words divided by the ratio for the largest."""
    table = compared(rows, model, measure)
    few, many = (table[table.words == count] for count in (table.words.min(), table.words.max()))
    return (_log_ratio(few) - _log_ratio(many)).map(math.exp)


@draws
def beyond_random(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return the ratio of the model divided by the ratio of its architecture with random weights, in the first text."""
    control = compared(rows, model, measure, weights=RANDOM)
    table = compared(rows, model, measure)
    table = table[table.text.isin(control.text)]
    return (_log_ratio(table) - _log_ratio(control)).dropna().map(math.exp)


@draws
def published_gain(rows: Rows, measure: str) -> "Series[float]":
    """Return same topic minus different topics, as a mean over the source's models, texts and numbers of words."""
    tables = [compared(rows, model, measure) for model in PUBLISHED]
    return DataFrame([_mean(table, table.same - table.different) for table in tables]).mean()
