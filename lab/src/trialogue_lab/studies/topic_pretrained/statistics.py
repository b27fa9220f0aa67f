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


def select_comparisons(
    rows: Rows, model: str, measure: str, *, single: bool = True, weights: str = PRETRAINED, **values: int
) -> DataFrame:
    """Select the similarities of words from the same topic and from different topics, as measured in one model.

    A similarity is the cosine or dot product of embeddings, or an attention weight. It is averaged over pairs of words
    of the same topic, and over pairs of different topics.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the model.
        measure: Name of the similarity.
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


def _average_by_seed(table: DataFrame, values: "Series[float]") -> "Series[float]":
    return values.groupby(table.seed).agg(lambda group: group.mean(skipna=False)).dropna()


def _compute_log_ratio(table: DataFrame) -> "Series[float]":
    return _average_by_seed(table, (table.same / table.different).map(math.log))


@draws
def gain(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how much more similar words of the same topic are than words of different topics, in a pretrained model.

    The similarity of two words is the cosine or dot product of embeddings, or an attention weight. It is averaged over
    pairs of each kind, and the means are subtracted. Every word has a single topic.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the model.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One difference per seed of the sampled passages, averaged over texts and over topic sizes (numbers of words per
        topic).
    """
    table = select_comparisons(rows, model, measure)
    return _average_by_seed(table, table.same - table.different)


@draws
def ratio(
    rows: Rows,
    model: str,
    measure: str,
    words: int | None = None,
    single: bool = True,
    weights: str = PRETRAINED,
) -> "Series[float]":
    """Return the ratio of the similarities of words from the same topic and from different topics.

    Similarities of two words are measured in a model, and averaged over pairs of each kind.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the model.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.
        words: Number of words of a topic. None (default) for all measured numbers.
        single: Whether every word has a single topic (default: True). Otherwise, a word may have several topics.
        weights: "pretrained" (default), or "random" for the same architecture with random weights.

    Returns:
        One ratio per seed, as the geometric mean over texts and topic sizes. Seeds are omitted if the mean similarity
        of one kind of pairs is not positive.

    Raises:
        NoRows: If no row matches.
    """
    size = {} if words is None else {"words": words}
    table = select_comparisons(rows, model, measure, single=single, weights=weights, **size)
    positive = (table.same / table.different).where((table.same > 0) & (table.different > 0))
    return _average_by_seed(table, positive.map(math.log)).map(math.exp)


@draws
def mostly(rows: Rows, model: str, measures: tuple[str, ...]) -> Counts:
    """Count how often words of the same topic are more similar than words of different topics.

    Similarities are averaged over word pairs before they are compared, for each text, number of words of a
    topic, and kind of similarity.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the pretrained model.
        measures: Names of similarities: cosine and dot product of embeddings, or attention weight.

    Returns:
        Per seed, the number of comparisons in which the same topic has the larger mean, and the number of all
        comparisons.

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
    """Return how much more similar words of one topic are than words that often occur together, in a pretrained model.

    Words of one topic usually occur in the same passages. The difference of the mean similarities shows whether a model
    represents the topic itself, or only this co-occurrence. Both means are over equally many pairs.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the pretrained model.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One difference per seed, averaged over texts and over topic sizes (numbers of words per topic).

    Raises:
        NoRows: If a kind has fewer than 30 pairs, or if the kinds have different numbers of pairs.
    """
    table = select_comparisons(rows, model, measure)
    few = (table.same_pairs < MIN_PAIRS) | (table.same_pairs != table.together_pairs)
    if few.any():
        raise NoRows(
            f"{few.sum()} of {len(few)} comparisons have fewer than {MIN_PAIRS} pairs, or unequal numbers"
        )
    return _average_by_seed(table, table.same - table.together)


@draws
def level(rows: Rows, model: str, measure: str, pairs: str, words: int) -> "Series[float]":
    """Return the mean similarity of word pairs of one kind in a pretrained model, for example of the same topic.

    Every word has a single topic.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the pretrained model.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.
        pairs: Kind of the pairs: "same" for the same topic, "different" for different topics, or "together" for the
            pairs that occur together in the most passages.
        words: Number of words of a topic.

    Returns:
        One mean over texts, per seed.
    """
    table = select_comparisons(rows, model, measure, words=words)
    return _average_by_seed(table, table[pairs])


@draws
def fall(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how topic separation changes with the number of words per topic, as a ratio (few words / many words).

    The separation is (mean similarity of words of the same topic) / (mean similarity of words of different topics). It
    is computed for the smallest and the largest measured number of words per topic.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the pretrained model.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One ratio per seed: separation with the fewest words / separation with the most words.
    """
    table = select_comparisons(rows, model, measure)
    few, many = (table[table.words == count] for count in (table.words.min(), table.words.max()))
    return (_compute_log_ratio(few) - _compute_log_ratio(many)).map(math.exp)


@draws
def beyond_random(rows: Rows, model: str, measure: str) -> "Series[float]":
    """Return how much better a pretrained model separates topics than a model with random weights, as a ratio.

    The separation is (mean similarity of words of the same topic) / (mean similarity of words of different topics).
    Only the first text of the run is used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the model.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One ratio per seed: separation with pretrained weights / separation with random weights.
    """
    control = select_comparisons(rows, model, measure, weights=RANDOM)
    table = select_comparisons(rows, model, measure)
    table = table[table.text.isin(control.text)]
    return (_compute_log_ratio(table) - _compute_log_ratio(control)).dropna().map(math.exp)


@draws
def published_gain(rows: Rows, measure: str) -> "Series[float]":
    """Return how much more similar words of the same topic are than words of different topics, in published models.

    The difference of the mean similarities is averaged over the models.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        measure: Name of the similarity: the cosine or dot product of embeddings, or the attention weight.

    Returns:
        One difference per seed, averaged over models, texts and topic sizes (numbers of words per topic).
    """
    tables = [select_comparisons(rows, model, measure) for model in PUBLISHED]
    return DataFrame([_average_by_seed(table, table.same - table.different) for table in tables]).mean()
