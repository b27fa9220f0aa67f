"""Statistics of the study about sampling from a power p(x)^alpha of the model's distribution.

p(x) is the probability of a complete text x under the model. Distances are total variation distances from the
normalized p^alpha.
"""

from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")
chains = Replication("draw", "chain_seeds")
markov_models = Replication("draw", "markov_seeds")


@draws
def local(rows: Rows, column: str, alpha: float | None = None) -> "Series[float]":
    """Return an exact property of local rules that approximate the power p(x)^alpha of a model's distribution.

    A local rule chooses each token from the model's next-token distribution only. The models are random, with three
    tokens. Distances are total variation distances from the normalized p^alpha.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column.
            - "temperature": distance of sampling at temperature 1 / alpha.
            - "best": distance of sampling at the best temperature.
            - "best_by_position": distance if every position has its own best temperature.
            - "any_rule": lower bound on the mean distance of any local rule, over models with equal first next-token
              distributions.
            - "sibling_range": mean range of log sum_y p(y)^alpha over the next tokens of a prefix, where y runs over
              continuations.
            - "entropy_difference": mean entropy of completions of the first token under p^alpha, minus that under
              temperature 1 / alpha.
        alpha: Power. None (default) for the largest one.

    Returns:
        One number per seed of the model.
    """
    table = rows["local"]
    alpha = float(table.alpha.max()) if alpha is None else alpha
    return table[table.alpha == alpha].set_index("seed")[column]


@exact
def least_excess(rows: Rows) -> float:
    """Return how much larger the variance of importance weights is for other proposals than for the best temperature.

    The target is the normalized power p^alpha of a model's next-token distribution p. The weight of a next token is
    p^alpha / q for a proposal q. Its relative variance (variance / mean^2) is smallest in theory for the proposal at
    temperature 1 / alpha.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The smallest difference over prefixes, random models, powers and proposals.
    """
    table = rows["weights"]
    return float(table[table.factor != 1].least_excess.min())


@draws
def best_factor(rows: Rows) -> "Series[float]":
    """Return the temperature at which importance weights vary least, multiplied by alpha.

    The target is the normalized power p(x)^alpha of a model's distribution p. Texts x are sampled from the model at
    some temperature, with probability q(x), and have the importance weights p(x)^alpha / q(x).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One number per seed of the model, for the largest power alpha.
    """
    return _select_inverse_temperature(rows).best_factor


@draws
def variance_ratio(rows: Rows) -> "Series[float]":
    """Return by what factor the best temperature reduces the variance of importance weights.

        ratio = (smallest variance over all temperatures) / (variance at temperature 1 / alpha)

    The target is the normalized power p(x)^alpha of a model's distribution p. Texts x are sampled from the model at
    some temperature, with probability q(x), and have the importance weights p(x)^alpha / q(x).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One ratio per seed of the model, for the largest power alpha.
    """
    table = _select_inverse_temperature(rows)
    return table.best_whole / table.whole


def _select_inverse_temperature(rows: Rows) -> DataFrame:
    """Select the rows of temperature 1 / alpha for the largest power alpha, by seed."""
    table = rows.where("weights", factor=1.0)
    return table[table.alpha == table.alpha.max()].set_index("seed")


@draws
def weights(rows: Rows, column: str, proposal: str) -> "Series[float]":
    """Return the relative variance (variance / mean^2) of importance weights for one proposal.

    The target is the normalized power p(x)^alpha of a model's distribution p, for the largest measured power alpha.
    Texts are sampled from the proposal.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "incremental" for the weights of single tokens given a prefix, averaged over prefixes, or "whole" for
            the weights of complete texts.
        proposal: Name of the distribution that texts are sampled from, for example "model".

    Returns:
        One number per seed of the model.
    """
    table = rows.where("weights", proposal=proposal)
    return table[table.alpha == table.alpha.max()].set_index("seed")[column]


@draws
def lookahead(rows: Rows, rollouts: int, column: str = "variation") -> "Series[float]":
    """Return the error or the cost of lookahead, a sampler of the power p(x)^alpha of a model's distribution.

    Lookahead samples completions of every candidate token to estimate how much p(x)^alpha favors it.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rollouts: Number of completions per candidate token.
        column: Name of the column.
            - "variation" (default): total variation distance of the output from p^alpha.
            - "calls": model calls per output.
            - "distinct_calls": distinct prefixes that are evaluated for an output.

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
    """Return the exact error of a Metropolis-Hastings chain that samples from p(x)^alpha, for short texts x.

    The models p are random.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        chain: Name of the chain: "corrected" or "released".
        ends: "one length" if all texts have the same length, or "early ends" if a text can end after each token.
        blocks: Number of blocks in which a text grows.
        steps: Number of steps per block (default: 100).
        column: "variation" (default) for the total variation distance of the output from p^alpha, or "failed" for the
            probability of an incomplete output.
        alpha: Power. None (default) for the smallest one.

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
    """Return the error of a Metropolis-Hastings chain that samples from p(x)^alpha, for texts x of any length.

    The model p is a Markov model, and the chain has 16 blocks. Its error is the total variation distance of the lengths
    of outputs from their exact distribution.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        chain: Name of the chain: "corrected" or "released". "exact draws" for exact sampling.
        steps: Number of steps per block. None (default) for the largest one.
        column: Name of the column.
            - "variation" (default): the error.
            - "failed": share of incomplete outputs.
            - "length": mean length of the outputs.
            - "calls": model calls per output.
        beyond_exact: Whether to subtract the value for as many exact samples, which is due to sampling error only.

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
    """Return a measurement of a sampler of p(x)^alpha, for Markov models p of long texts x.

    All texts have the same length. The measurement describes how often texts visit one token, the one after which the
    next token is most predictable.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Name of the sampler, for example "16 by weight" for importance sampling from 16 texts. "exact draws"
            for exact sampling.
        length: Number of tokens of a text. None (default) for the longest texts.
        column: Name of the column.
            - "variation" (default): total variation distance of the number of visits from its exact distribution.
            - "bias": error of the mean number of visits, divided by the length.
            - "calls": model calls per output, divided by the length.
            - "log_moment": logarithm of the second moment of the importance weights at temperature 1 / alpha.
        beyond_exact: Whether to subtract the value for as many exact samples, which is due to sampling error only.

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
    """Return how much the error of a sampler of p(x)^alpha increases from the shortest to the longest texts x.

    The models p are Markov models. The error is the total variation distance of the number of visits to one token from
    the exact distribution. The error of as many exact samples is subtracted.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Name of the sampler, for example "16 by weight" for importance sampling from 16 texts.

    Returns:
        One difference per seed of the model.
    """
    shortest = int(rows["markov"].length.min())
    return markov(sampler, None, "variation", True)(rows) - markov(sampler, shortest, "variation", True)(rows)
