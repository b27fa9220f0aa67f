"""Statistics of the study about word topics in pretrained models.

A measure, for example the cosine of embeddings or attention, is averaged over pairs of words. Pairs of words of the
same topic are compared with pairs of different topics. Each seed samples passages of the texts and fits topics to them.
"""

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
    """Return the measurements of word pairs of one model.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure, for example of the similarity of embeddings.
        single: Whether every word has a single topic. Otherwise, it may have several.
        weights: "pretrained", or "random" for the same architecture with random weights.

    Returns:
        One row per seed, text and number of words of a topic.

    Raises:
        NoRows: If no row matches.
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
    """Return the mean of a measure over word pairs of the same topic minus its mean over pairs of different topics.

    Every word has a single topic. Differences are averaged over texts and numbers of words, because their minimum would
    be negative because of noise alone.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure.

    Returns:
        One difference per seed.
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
    """Return the ratio of the mean of a measure over word pairs of the same topic to its mean over different topics.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure.
        words: Number of words of a topic. None for all numbers.
        single: Whether every word has a single topic.
        weights: "pretrained", or "random" for the same architecture with random weights.

    Returns:
        One geometric mean over texts, and over numbers of words if `words` is None, per seed. Seeds for which a mean is
        not positive are omitted.
    """
    table = compared(rows, model, measure, single=single, weights=weights)
    table = table if words is None else table[table.words == words]
    if table.empty:
        raise NoRows(f"no topics of {words} words")
    positive = (table.same / table.different).where((table.same > 0) & (table.different > 0))
    return _mean(table, positive.map(math.log)).map(math.exp)


@draws
def mostly(rows: Rows, model: str, measures: tuple[str, ...]) -> Counts:
    """Count the comparisons in which a measure is larger for word pairs of the same topic than of different topics.

    Words may have several topics.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measures: Names of the measures.

    Returns:
        Comparisons with a larger value and all comparisons, per seed. There is one per text, number of words and
        measure.
    """
    table = rows.where("comparison", model=model, single=False, weights=PRETRAINED)
    table = table[table.measure.isin(measures)]
    if table.empty:
        raise NoRows(f"no rows of {model}")
    larger = (table.same > table.different).groupby(table.seed)
    return Counts(larger.sum(), larger.count())


@draws
def together_gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return the mean of a measure over word pairs of the same topic minus its mean over the most frequent pairs.

    The most frequent pairs are those that share the most passages. Every word has a single topic.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure.

    Returns:
        One mean over texts and numbers of words per seed.

    Raises:
        NoRows: If a comparison has fewer than 30 pairs of a kind, or different numbers of pairs of both kinds.
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
    """Return the mean of a measure over word pairs of one class. Every word has a single topic.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure.
        pairs: Class of the pairs: "same" topic, "different" topics, or "together" for the pairs that share the most
            passages.
        words: Number of words of a topic.

    Returns:
        One mean over texts per seed.
    """
    table = compared(rows, model, measure)
    table = table[table.words == words]
    return _mean(table, table[pairs])


@draws
def fall(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how much larger the contrast between topics is for topics of few words than for topics of many words.

    The contrast is the ratio of the mean of a measure over word pairs of the same topic to its mean over different
    topics.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure.

    Returns:
        One ratio of contrasts, smallest over largest number of words, per seed.
    """
    table = compared(rows, model, measure)
    few, many = (table[table.words == count] for count in (table.words.min(), table.words.max()))
    return (_log_ratio(few) - _log_ratio(many)).map(math.exp)


@draws
def beyond_random(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how much larger the contrast between topics is in a pretrained model than with random weights.

    The contrast is the ratio of the mean of a measure over word pairs of the same topic to its mean over different
    topics. Only the first text is used.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the model.
        measure: Name of the measure.

    Returns:
        One ratio of contrasts per seed.
    """
    control = compared(rows, model, measure, weights=RANDOM)
    table = compared(rows, model, measure)
    table = table[table.text.isin(control.text)]
    return (_log_ratio(table) - _log_ratio(control)).dropna().map(math.exp)


@draws
def published_gain(rows: Rows, measure: str) -> "Series[float]":
    """Return the difference of a measure between word pairs of the same topic and of different topics.

    All models of the source are included.

    Args:
        rows: Measured rows of a run, by kind.
        measure: Name of the measure.

    Returns:
        One mean over models, texts and numbers of words per seed.
    """
    tables = [compared(rows, model, measure) for model in PUBLISHED]
    return DataFrame([_mean(table, table.same - table.different) for table in tables]).mean()
