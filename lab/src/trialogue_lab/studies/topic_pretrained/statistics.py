"""Statistics of the study about word topics in pretrained models.

A measure of a pair of words is the cosine or dot product of their embeddings, or the attention between them. It is
averaged over pairs of words of the same topic, and over pairs of different topics. Each seed samples passages of the
texts and fits topics to them.
"""

import math

from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows
from trialogue_lab.studies.topic_pretrained.config import PUBLISHED

draws = Replication("draw", "seeds", objects="these texts and models")

PRETRAINED, RANDOM = "pretrained", "random"
MIN_PAIRS = 30
"""Smallest number of word pairs for a comparison with the pairs that most often occur together"""


def compared(
    rows: Rows, model: str, measure: str, *, single: bool = True, weights: str = PRETRAINED, **values: int
) -> DataFrame:
    """Select the measurements of word pairs in one model.

    Cosines, dot products or attention weights are averaged over pairs of words of the same topic, and over pairs of
    different topics.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.
        single: Whether every word has a single topic. Otherwise, a word may have several topics.
        weights: "pretrained" (default), or "random" for the same architecture with random weights.
        **values: Values of other columns that select the rows, for example `words=30`.

    Returns:
        One row per seed, text and number of words of a topic. The columns `same` and `different` are the two means.

    Raises:
        NoRows: If no row matches.
    """
    setting = {"model": model, "measure": measure, "single": single, "weights": weights}
    return rows.require("comparison", **setting, **values)


def _mean(table: DataFrame, values: "Series[float]") -> "Series[float]":
    return values.groupby(table.seed).agg(lambda group: group.mean(skipna=False)).dropna()


def _log_ratio(table: DataFrame) -> "Series[float]":
    return _mean(table, (table.same / table.different).map(math.log))


@draws
def gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return the difference of a measure between word pairs within and between topics.

    The measure is averaged over the pairs of each kind in a pretrained model. Every word has a single topic.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One mean difference over texts and numbers of words of a topic, per seed of the sampled passages.
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
    """Return the ratio of a measure between word pairs within and between topics.

    The measure is averaged over the pairs of each kind.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.
        words: Number of words of a topic. None (default) for all measured numbers.
        single: Whether every word has a single topic (default: True). Otherwise, a word may have several topics.
        weights: "pretrained" (default), or "random" for the same architecture with random weights.

    Returns:
        One geometric mean of ratios over texts and numbers of words, per seed. Seeds with a mean that is not positive
        are omitted.

    Raises:
        NoRows: If no row matches.
    """
    size = {} if words is None else {"words": words}
    table = compared(rows, model, measure, single=single, weights=weights, **size)
    positive = (table.same / table.different).where((table.same > 0) & (table.different > 0))
    return _mean(table, positive.map(math.log)).map(math.exp)


@draws
def mostly(rows: Rows, model: str, measures: tuple[str, ...]) -> Counts:
    """Count the comparisons in which a measure is larger within topics than between topics.

    The measure is averaged over word pairs of the same topic, and over pairs of different topics. Each comparison
    belongs to one text, number of words of a topic, and measure. Words may have several topics.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the pretrained model.
        measures: Names of the measures: cosine and dot product of embeddings, or attention weight.

    Returns:
        The number of comparisons with a larger value and the number of all comparisons, per seed.

    Raises:
        NoRows: If no row matches.
    """
    table = rows.where("comparison", model=model, single=False, weights=PRETRAINED)
    table = table[table.measure.isin(measures)]
    if table.empty:
        raise NoRows(f"no rows of {model}")
    larger = (table.same > table.different).groupby(table.seed)
    return Counts(larger.sum(), larger.count())


@draws
def together_gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return the difference of a measure between same-topic pairs and pairs that often co-occur.

    The second kind of word pairs are the ones that occur together in the most passages. Both kinds have the same number
    of pairs. The measure is averaged over the pairs of each kind, and every word has a single topic.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the pretrained model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One mean difference over texts and numbers of words of a topic, per seed.

    Raises:
        NoRows: If a kind has fewer than 30 pairs, or if the kinds have different numbers of pairs.
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
    """Return the mean of a measure over word pairs of one kind.

    Every word has a single topic.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the pretrained model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.
        pairs: Kind of the pairs: "same" for the same topic, "different" for different topics, or "together" for the
            pairs that occur together in the most passages.
        words: Number of words of a topic.

    Returns:
        One mean over texts, per seed.
    """
    table = compared(rows, model, measure, words=words)
    return _mean(table, table[pairs])


@draws
def fall(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how much stronger topics are separated if they have few words instead of many.

    The separation is the mean of a measure over word pairs of the same topic, divided by its mean over pairs of
    different topics. It is compared between the smallest and the largest measured number of words per topic.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the pretrained model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One ratio of separations (fewest / most words) per seed.
    """
    table = compared(rows, model, measure)
    few, many = (table[table.words == count] for count in (table.words.min(), table.words.max()))
    return (_log_ratio(few) - _log_ratio(many)).map(math.exp)


@draws
def beyond_random(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how much stronger a pretrained model separates topics than a model with random weights.

    The separation is the mean of a measure over word pairs of the same topic, divided by its mean over pairs of
    different topics. Only the first text of the run is used.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        model: Name of the model.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One ratio of separations (pretrained / random weights) per seed.
    """
    control = compared(rows, model, measure, weights=RANDOM)
    table = compared(rows, model, measure)
    table = table[table.text.isin(control.text)]
    return (_log_ratio(table) - _log_ratio(control)).dropna().map(math.exp)


@draws
def published_gain(rows: Rows, measure: str) -> "Series[float]":
    """Return the difference of a measure within and between topics, for the published models.

    The measure is averaged over word pairs of the same topic and of different topics. The difference is averaged over
    all models of the publication.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        measure: Name of the measure: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One mean difference over models, texts and numbers of words of a topic, per seed.
    """
    tables = [compared(rows, model, measure) for model in PUBLISHED]
    return DataFrame([_mean(table, table.same - table.different) for table in tables]).mean()
