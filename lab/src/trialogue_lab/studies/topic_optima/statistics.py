"""Statistics of the study about optimal weights of a one-layer transformer on topic models, all computed exactly.

A topic model has T topics of v words, and every document has tau of them. Attention is described by two numbers. Beta
is the attention weight of the same word, and alpha is the weight of other words of the same topic, both relative to
words of other topics. Value matrices are "block" (constant within topics) or "diagonal". Extremes of columns are
defined in the claims.
"""

import numpy as np

from trialogue_lab.ledger import NoRows, Rows, exact


@exact
def least_growth(rows: Rows, edge: str, values: str) -> float:
    """Return the smallest growth of an edge of the region of low loss with the number tau of topics per document.

    The loss of a one-layer transformer is low at attention weights whose loss is close to the minimum.

    Args:
        rows: Measured rows of a run, by kind.
        edge: Column of the edge, for example "gamma_low".
        values: Kind of the value matrix, "block" or "diagonal".

    Returns:
        The smallest increase of the edge's logarithm from one tau to the next.

    Raises:
        NoRows: If only one tau was measured.
    """
    table = rows.where("region", values=values, variant="printed").sort_values("tau")
    if len(table) < 2:
        raise NoRows("the growth needs landscapes for two values of tau")
    return float(np.diff(np.log(table[edge])).min())


@exact
def minimum(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """Return a property of the attention weights that minimize the loss, for a model with tau^2 topics.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the property, for example "beta", the optimal attention weight of the same word relative to
            words of other topics.
        tau: Number of topics per document.
        values: Kind of the value matrix, "block" or "diagonal".
        variant: Formula of the loss: "printed" as published, "mask" for the exact loss, or "nomask" for the exact loss
            without attention to [MASK].
    """
    return _single_value(rows, "minimum", column, tau=tau, values=values, variant=variant)


@exact
def region(rows: Rows, column: str, tau: int, values: str = "block") -> float:
    """Return a property of the region of attention weights with low loss.

    A loss is low if its height above the minimum is at most a tenth of the height of zero attention weights.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the property, for example "gamma_low".
        tau: Number of topics per document.
        values: Kind of the value matrix, "block" or "diagonal".
    """
    return _single_value(rows, "region", column, tau=tau, values=values, variant="printed")


@exact
def landscape(rows: Rows, column: str, tau: int, values: str = "block", variant: str = "printed") -> float:
    """Return a property of the attention weights that minimize the loss, for the models of Figures 2.7 and 2.8.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the property, for example "beta", the optimal attention weight of the same word relative to
            words of other topics.
        tau: Number of topics per document.
        values: Kind of the value matrix, "block" or "diagonal".
        variant: Formula of the loss: "printed" as published, "mask" for the exact loss, or "nomask" for the exact loss
            without attention to [MASK].
    """
    return _single_value(rows, "landscape-minimum", column, tau=tau, values=values, variant=variant)


@exact
def at_length(rows: Rows, column: str, length: int = 150, distribution: str = "Dirichlet") -> float:
    """Return a property of the optimal value matrix for documents of a given length.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the property, for example "block", the mean entry of different words of the same topic.
        length: Number of words of a document.
        distribution: "Dirichlet" for the topic shares of the thesis' experiments, or "tau = 3".
    """
    return _single_value(rows, "length", column, law=distribution, length=length)


def _single_value(rows: Rows, kind: str, column: str, **values: object) -> float:
    table = rows.where(kind, **values)
    if table.empty:
        raise NoRows(f"no rows of the kind {kind!r} with {values}")
    return float(table[column].iloc[0])
