"""Statistics of the study about sampling from a power of the model's distribution.

The power is p(x)^alpha, where p(x) is the probability of a complete text x under the model. Distances are total
variations from the normalised power.
"""

from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")
chains = Replication("draw", "chain_seeds")
markov_models = Replication("draw", "markov_seeds")


@draws
def local(rows: Rows, column: str, alpha: float | None = None) -> "Series[float]":
    """Return an exactly computed property of local rules on random models with three tokens.

    A local rule chooses each token from the model's next-token distribution only.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: Name of the property. "temperature" is the distance of the per-token temperature 1 / alpha from the
            power, "best" that of the best temperature, and "best_by_position" that of the best temperatures found for
            each position. "any_rule" is a lower bound of the mean distance of any local rule, over models with equal
            first next-token distributions. "sibling_range" is the mean range of the logarithm of the power sums of
            the children of a prefix. "entropy_difference" is the mean entropy of the completions after the first token,
            under the power minus under the temperature.
        alpha: Power. None (default) for the largest.

    Returns:
        One number per seed of the model.
    """
    table = rows["local"]
    alpha = float(table.alpha.max()) if alpha is None else alpha
    return table[table.alpha == alpha].set_index("seed")[column]


@exact
def least_excess(rows: Rows) -> float:
    """Return the smallest excess of the relative variance of an incremental weight over that at temperature 1 / alpha.

    The incremental weight is p^alpha / q for the next-token distribution p and a proposal q. The variance is
    conditional on the prefix, and divided by the squared mean.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        The minimum over prefixes, random models, powers, other temperatures, the model and the uniform distribution.
    """
    table = rows["weights"]
    return float(table[table.factor != 1].least_excess.min())


@draws
def best_factor(rows: Rows) -> "Series[float]":
    """Return alpha times the temperature whose weights of complete texts have the smallest variance.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        One number per seed of the model, for the largest power.
    """
    return _at_inverse(rows).best_factor


@draws
def variance_ratio(rows: Rows) -> "Series[float]":
    """Return the smallest variance of the weights of complete texts over temperatures, relative to that at 1 / alpha.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        One ratio per seed of the model, for the largest power.
    """
    table = _at_inverse(rows)
    return table.best_whole / table.whole


def _at_inverse(rows: Rows) -> DataFrame:
    """Return the rows of the temperature 1 / alpha for the largest power, by seed."""
    table = rows.where("weights", factor=1.0)
    return table[table.alpha == table.alpha.max()].set_index("seed")


@draws
def weights(rows: Rows, column: str, proposal: str) -> "Series[float]":
    """Return the relative variance of weights of a proposal, for the largest power.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: "incremental" for the mean over prefixes of the variance of an incremental weight, or "whole" for the
            variance of the weight of a complete text.
        proposal: Name of the proposal, for example "model".

    Returns:
        One number per seed of the model.
    """
    table = rows.where("weights", proposal=proposal)
    return table[table.alpha == table.alpha.max()].set_index("seed")[column]


@draws
def lookahead(rows: Rows, rollouts: int, column: str = "variation") -> "Series[float]":
    """Return the distance or the cost of lookahead by sampled completions.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        rollouts: Number of completions per candidate token.
        column: "variation" (default) for the distance from the power, "calls" for the model calls per output, or
            "distinct_calls" for the distinct prefixes evaluated for an output.

    Returns:
        One number per seed of the model.
    """
    return rows.require("lookahead", rollouts=rollouts).set_index("seed")[column]


@chains
def chain(
    rows: Rows,
    chain: str,
    ends: str,
    blocks: int,
    steps: int = 100,
    column: str = "variation",
    alpha: float | None = None,
) -> "Series[float]":
    """Return the exact distance of the output of a Metropolis-Hastings chain from the power, on random models.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        chain: Name of the chain: "corrected" or "released".
        ends: "one length" if all texts have the same length, or "early ends" if a text can end after each token.
        blocks: Number of blocks in which a text grows.
        steps: Number of steps per block (default: 100).
        column: "variation" (default), or "failed" for the probability of an incomplete output.
        alpha: Power. None (default) for the smallest.

    Returns:
        One number per seed of the model.
    """
    table = rows.where("chain", chain=chain, ends=ends, blocks=blocks, steps=steps)
    alpha = float(rows["chain"].alpha.min()) if alpha is None else alpha
    return table[table.alpha == alpha].set_index("seed")[column]


@markov_models
def ended(
    rows: Rows, chain: str, steps: int | None = None, column: str = "variation", beyond_exact: bool = False
) -> "Series[float]":
    """Return the distance of the lengths of texts from the power, for a chain with 16 blocks on Markov models.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        chain: Name of the chain, "corrected" or "released", or "exact draws".
        steps: Number of steps per block. None (default) for the largest.
        column: "variation" (default) for the total variation, "failed" for the share of incomplete outputs, "length"
            for the mean length, or "calls" for the model calls per output.
        beyond_exact: Whether to subtract the distance of as many exact draws, which is sampling error.

    Returns:
        One number per seed of the model.
    """
    table = rows.where("ended", chain=chain)
    steps = int(table.steps.max()) if steps is None else steps
    found = table[table.steps == steps].set_index("seed")[column]
    if beyond_exact:
        found = found - rows.where("ended", chain="exact draws").set_index("seed")[column]
    return found


@markov_models
def markov(
    rows: Rows, sampler: str, length: int | None = None, column: str = "variation", beyond_exact: bool = False
) -> "Series[float]":
    """Return a measured value of a sampler on Markov models with texts of one length.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        sampler: Name of the sampler, for example "16 by weight", or "exact draws".
        length: Length of the texts. None (default) for the longest.
        column: "variation" (default) for the total variation of the number of visits to the token with the most
            predictable next token, "bias" for the error of its mean as a share of the length,
            "calls" for the model calls per output divided by the length, or "log_moment" for the logarithm of the
            second moment of the weights at temperature 1 / alpha.
        beyond_exact: Whether to subtract the value for as many exact draws, which is sampling error.

    Returns:
        One number per seed of the model.
    """
    table = rows.where("markov", sampler=sampler)
    length = int(table.length.max()) if length is None else length
    found = table[table.length == length].set_index("seed")[column]
    if beyond_exact:
        others = rows.where("markov", sampler="exact draws", length=length)
        found = found - others.set_index("seed")[column]
    return found


@markov_models
def growth(rows: Rows, sampler: str) -> "Series[float]":
    """Return the increase of the distance of a sampler from the shortest to the longest texts of Markov models.

    The distance is the total variation of the number of visits to the token with the most predictable next token, minus
    that of as many exact draws.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        sampler: Name of the sampler, for example "16 by weight".

    Returns:
        One difference per seed of the model.
    """
    shortest = int(rows["markov"].length.min())
    return markov(sampler, None, "variation", True)(rows) - markov(sampler, shortest, "variation", True)(rows)
