"""Statistics of the study about unmasking samplers, each with one number per seed.

A seed draws one distribution of each family. Distances of families are averaged, and ratios are averaged by their
logarithms.
"""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows
from trialogue_lab.studies.unmasking.config import NOISE, TWO_TOKENS

draws = Replication("draw", "seeds")


def _by_instance(table: DataFrame, column: str) -> "Series[float]":
    """Return a column, indexed by seed and family."""
    return table.set_index(["seed", "family"])[column].astype(float)


def _evaluate(table: DataFrame, expression: str) -> DataFrame:
    """Return a table with the values of an expression of its columns in the column `value`."""
    return table.assign(value=np.asarray(table.eval(expression, engine="python"), dtype=np.float64))


def _ratio(first: "Series[float]", second: "Series[float]") -> "Series[float]":
    """Return, for each seed, the geometric mean over families of a ratio."""
    logs = (first / second).map(math.log)
    return logs.groupby("seed").mean().map(math.exp)


@draws
def sampled(rows: Rows, sampler: str, size: int, column: str, noise: float = 0.0) -> "Series[float]":
    """Return a measurement of the exact output distribution of a sampler, averaged over families.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Name of the sampler, for example "confidence".
        size: Number of positions per pass, 0 for a threshold.
        column: Column, or expression of columns. "divergence" is the divergence from the true distribution in nats,
            "variation" the total variation, "entropy" the entropy of outputs, "coverage" the expected true probability
            of the different texts among 64 samples, and "quality" the mean true log-probability of outputs minus that
            of true samples.
        noise: Standard deviation of the noise in the logits (default: 0).
    """
    table = rows.require("sampler", sampler=sampler, size=size, noise=noise)
    return _evaluate(table, column).groupby("seed").value.mean()


@draws
def farther(
    rows: Rows, first: str, second: str, size: int, noise: float = 0.0, more_than_two_tokens: bool = False
) -> "Series[float]":
    """Return the ratio of the divergences of two samplers from the true distribution, as a geometric mean.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        first: Name of the sampler in the numerator.
        second: Name of the sampler in the denominator.
        size: Number of positions per pass of both.
        noise: Standard deviation of the noise in the logits (default: 0).
        more_than_two_tokens: Whether to use only distributions with more than two tokens (default: False).
    """
    pair = []
    for sampler in (first, second):
        table = rows.require("sampler", sampler=sampler, size=size, noise=noise)
        if more_than_two_tokens:
            table = table[~table.family.isin(TWO_TOKENS)]
        pair.append(_by_instance(table, "divergence"))
    return _ratio(*pair)


@draws
def score(rows: Rows, expression: str, noise: float = NOISE) -> "Series[float]":
    """Return a mean over families of an expression of losses of texts, in nats per token.

    The losses are averages over the true distribution, at one position per pass. "left_to_right" is the loss of this
    order. "mean_order" averages the losses of all orders, which is the evidence lower bound. "mixture" is the loss of a
    sampler with random order. "best" takes the best order of each text, "best_total" is the sum of these scores over
    all texts, and "best_normalised" is the loss after division by this sum. "blocks" restricts the search to blocks of
    four positions. "entropy" is the smallest possible loss of a distribution.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        expression: Expression of columns.
        noise: Standard deviation of the noise in the logits (default: 0.3).
    """
    table = rows.require("scores", noise=noise)
    return _evaluate(table, expression).groupby("seed").value.mean()


@draws
def adaptive_loss(rows: Rows, noise: float = NOISE) -> "Series[float]":
    """Return the loss of the order by confidence minus the evidence lower bound, in nats per token.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        noise: Standard deviation of the noise in the logits (default: 0.3).
    """
    scores = rows.require("scores", noise=noise)
    divergence = _by_instance(
        rows.require("sampler", sampler="confidence", size=1, noise=noise), "divergence"
    )
    per_token = _by_instance(scores, "entropy") + divergence / _by_instance(scores, "sites")
    return (per_token - _by_instance(scores, "mean_order")).groupby("seed").mean()


@draws
def looseness(rows: Rows, noise: float = NOISE) -> "Series[float]":
    """Return the excess loss of a random order's mixture, relative to that of the evidence lower bound.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        noise: Standard deviation of the noise in the logits (default: 0.3).
    """
    table = rows.require("scores", noise=noise)
    excess = [
        _by_instance(table.assign(value=table[name] - table.entropy), "value")
        for name in ("mixture", "mean_order")
    ]
    return _ratio(*excess)


@draws
def mixture_share(rows: Rows, size: int) -> "Series[float]":
    """Return the divergence of a random order's mixture, relative to the mean divergence of its orders.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        size: Number of positions per pass.
    """
    table = rows.require("orders", size=size)
    return _ratio(_by_instance(table, "mixture"), _by_instance(table, "mean_of_orders"))


@draws
def random_sizes(rows: Rows) -> "Series[float]":
    """Return the divergence per order of random sizes, relative to equal sizes with as many passes."""
    table = rows["sizes"]
    logs = (table.random / table.equal).map(math.log)
    return logs.groupby(table.seed).mean().map(math.exp)


@draws
def greedy(rows: Rows, column: str, noise: float = 0.0) -> "Series[float]":
    """Return a measurement of decoding at temperature 0, averaged over families.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: "threshold" for the probability that a confidence threshold of 0.9 gives the same text as one token per
            pass, "two" for two tokens per pass, or "variation" for the total variation of the text of an empty prompt
            from the true distribution. Prompts are true texts with a uniform number of masked positions.
        noise: Standard deviation of the noise in the logits (default: 0).
    """
    return rows.require("greedy", noise=noise).groupby("seed")[column].mean()


@draws
def finds_mode(rows: Rows, noise: float = 0.0) -> Counts:
    """Count the distributions whose most probable text is decoded at temperature 0, with one token per pass.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        noise: Standard deviation of the noise in the logits (default: 0).
    """
    found = rows.require("greedy", noise=noise).groupby("seed").finds_mode
    return Counts(found.sum(), found.count())


@draws
def coin_growth(rows: Rows) -> "Series[float]":
    """Return the factor by which the smallest number of passes grows between the two largest lengths of coins."""
    shorter, longer = (
        rows.where("coins", length=length).set_index("seed").passes
        for length in rows.distinct("coins", "length")[-2:]
    )
    return longer / shorter


@draws
def remasking(rows: Rows, multiple: float, noise: float) -> "Series[float]":
    """Return the divergence with remasking, relative to the divergence without, at as many passes.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        multiple: Number of passes per position.
        noise: Standard deviation of the noise in the logits.
    """
    pair = [
        _by_instance(_remasked(rows, name, multiple, noise), "divergence")
        for name in ("ReMDM", "no remasking")
    ]
    return _ratio(*pair)


@draws
def more_passes(rows: Rows, few: float, many: float, noise: float, sampler: str = "ReMDM") -> "Series[float]":
    """Return the divergence of a remasking sampler with many passes, relative to few passes.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        few: Number of passes per position in the denominator.
        many: Number of passes per position in the numerator.
        noise: Standard deviation of the noise in the logits.
        sampler: "ReMDM" (default), or "no remasking".
    """
    pair = [_by_instance(_remasked(rows, sampler, multiple, noise), "divergence") for multiple in (many, few)]
    return _ratio(*pair)


@draws
def best_passes(rows: Rows, noise: float, sampler: str = "ReMDM") -> "Series[float]":
    """Return the number of passes per position with the smallest divergence, as a geometric mean over families.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        noise: Standard deviation of the noise in the logits.
        sampler: "ReMDM" (default), or "no remasking".
    """
    table = rows.require("remasking", sampler=sampler, noise=noise).reset_index(drop=True)
    best = table.loc[table.groupby(["seed", "family"]).divergence.idxmin()]
    return best.passes_per_token.map(math.log).groupby(best.seed).mean().map(math.exp)


def _remasked(rows: Rows, sampler: str, multiple: float, noise: float) -> DataFrame:
    return rows.require("remasking", sampler=sampler, passes_per_token=multiple, noise=noise)


@draws
def sweep(rows: Rows, size: int, noise: float) -> "Series[float]":
    """Return the divergence after one sweep of corrections, relative to the divergence before it.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        size: Number of positions per pass of the first sampler, which has random order.
        noise: Standard deviation of the noise in the logits.
    """
    pair = [
        _by_instance(rows.require("sweeps", size=size, sweeps=sweeps, noise=noise), "divergence")
        for sweeps in (1, 0)
    ]
    return _ratio(*pair)
