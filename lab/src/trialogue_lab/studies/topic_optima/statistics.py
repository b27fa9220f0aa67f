"""Statistics of the study about optimal weights of a one-layer transformer on topic models, all computed exactly.

A topic model has T topics of v words, and every document has tau of them. Attention is described by two
weights: beta for the same word, and alpha for other words of the same topic. Both are relative to the weight
of words of other topics. Value matrices are "block" (constant within topics) or "diagonal".
"""

import numpy as np

from trialogue_lab.ledger import NoRows, Rows, exact


@exact
def least_growth(rows: Rows, edge: str, values: str) -> float:
    """Return the smallest growth of the region of low loss with the number of topics per document.

    The region is the set of attention weights of a one-layer transformer whose loss is close to the minimum (see
    `region`). The result is the smallest increase of log(edge of the region) from one number of topics to the next.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        edge: Column of an edge of the region, for example "gamma_low", the smallest mean weight of words of
            the same topic.
        values: Form of the value matrix: "block" (entries are constant within topics) or "diagonal".

    Returns:
        The smallest growth.

    Raises:
        NoRows: If only one number of topics per document was measured.
    """
    table = rows.where("region", values=values, variant="printed").sort_values("tau")
    if len(table) < 2:
        raise NoRows("the growth needs landscapes for two values of tau")
    return float(np.diff(np.log(table[edge])).min())


@exact
def minimum(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """Return a property of the attention weights that minimize the loss of a one-layer transformer.

    The transformer predicts masked words of a topic model with tau^2 topics. Its attention has two weights,
    relative to words of other topics: beta for the same word, and alpha for other words of the same topic.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the property, for example "beta".
        tau: Number of topics per document.
        values: Form of the value matrix: "block" (entries are constant within topics) or "diagonal".
        variant: Formula of the loss: "printed" as published, "mask" for the exact loss, or "nomask" for the
            exact loss without attention to [MASK].
    """
    return float(rows.require("minimum", tau=tau, values=values, variant=variant)[column].iloc[0])


@exact
def region(rows: Rows, column: str, tau: int, values: str = "block") -> float:
    """Return a property of the set of attention weights with low loss.

    A one-layer transformer predicts masked words of a topic model. Its two weights are relative to words of other
    topics: beta for the same word, and alpha for other words of the same topic. A loss is low if its height above the
    minimum is at most a tenth of the height at alpha = beta = 0.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the property, for example "gamma_low", the smallest mean weight of words of the same topic.
        tau: Number of topics per document.
        values: Form of the value matrix: "block" (entries are constant within topics) or "diagonal".
    """
    return float(rows.require("region", tau=tau, values=values, variant="printed")[column].iloc[0])


@exact
def landscape(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """Return a property of the attention weights that minimize the loss of a one-layer transformer.

    The transformer predicts masked words of documents that contain `tau` topics. Its attention has two weights,
    relative to words of other topics: beta for the same word, and alpha for other words of the same topic. The topic
    model is that of the published plots of the loss (Figures 2.7 and 2.8 of the thesis).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the property, for example "beta".
        tau: Number of topics per document.
        values: Form of the value matrix: "block" (entries are constant within topics) or "diagonal".
        variant: Formula of the loss: "printed" for the published one, "mask" for the exact loss, or "nomask" for the
            exact loss without attention to [MASK].
    """
    return float(rows.require("landscape-minimum", tau=tau, values=values, variant=variant)[column].iloc[0])


@exact
def at_length(rows: Rows, column: str, length: int = 150, distribution: str = "Dirichlet") -> float:
    """Return a property of the value matrix that minimizes the loss on documents of a given length.

    A one-layer transformer predicts masked words of documents from a topic model. Its value matrix has one entry per
    pair of words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the property, for example "block", the mean entry of different words of the same topic.
        length: Number of words of a document (default: 150).
        distribution: Distribution of the topics of a document: "Dirichlet" as in the thesis' experiments (default), or
            "tau = 3" for three equally frequent topics.
    """
    return float(rows.require("length", law=distribution, length=length)[column].iloc[0])
