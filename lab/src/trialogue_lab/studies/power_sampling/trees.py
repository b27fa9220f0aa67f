"""Random models of short texts as arrays, with exact distributions of local rules and of powers."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize_scalar
from scipy.special import log_softmax, logsumexp

from trialogue.data import Table
from trialogue.randomness import numpy_generator

Array = NDArray[np.float64]
Levels = list[Array]
VOCAB = 3
_SPAN = np.log(8.0)
"""Temperatures are searched within this factor of 1 / alpha, in logarithms."""


def random_levels(horizon: int, seed: int, *names: object) -> Levels:
    """Return a random model of texts of one length, with uniformly random next-token distributions.

    Args:
        horizon: Length of the texts.
        seed: Seed of the model.
        *names: Further names of its random stream.

    Returns:
        Log-probabilities of the next token for each prefix. Entry d has the shape (V,) * (d + 1).
    """
    stream = numpy_generator(seed, "power-sampling", *names)
    shares = (stream.dirichlet(np.ones(VOCAB), VOCAB**depth) for depth in range(horizon))
    return [np.log(rows).reshape((VOCAB,) * (depth + 1)) for depth, rows in enumerate(shares)]


def table(levels: Levels) -> Table:
    """Return the model as an oracle of the library.

    Args:
        levels: Log-probabilities of the next token for each prefix.
    """
    return Table(lambda prefix: np.exp(levels[len(prefix)][prefix]).tolist(), VOCAB, max_length=len(levels))


def log_joint(levels: Levels) -> Array:
    """Return the log-probability (V, ..., V) of every text, with one axis per token.

    Args:
        levels: Log-probabilities of the next token for each prefix.
    """
    total = np.zeros(())
    for rows in levels:
        total = total[..., None] + rows
    return total


def log_futures(levels: Levels, alpha: float) -> Levels:
    """Return the log power sum of every prefix, the logarithm of the sum of p^alpha over its continuations.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        alpha: Power.

    Returns:
        Entry d has the shape (V,) * d, for prefixes of d tokens. The last entry is zero.
    """
    sums = [np.zeros((VOCAB,) * len(levels))]
    for rows in reversed(levels):
        sums.append(logsumexp(alpha * rows + sums[-1], axis=-1))
    return sums[::-1]


def power_of(log_probs: Array, alpha: float) -> Array:
    """Return the normalised p^alpha of all texts.

    Args:
        log_probs: Log-probabilities (V, ..., V) of the texts.
        alpha: Power.
    """
    return np.exp(alpha * log_probs - logsumexp(alpha * log_probs))


def tempered(levels: Levels, temperatures: Sequence[float]) -> Levels:
    """Return the model whose tokens are drawn at a temperature.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        temperatures: One temperature per position.
    """
    return [log_softmax(rows / tau, axis=-1) for rows, tau in zip(levels, temperatures, strict=True)]


def variation(first: Array, second: Array) -> float:
    """Return the total variation distance of two arrays of probabilities."""
    return float(np.abs(first - second).sum() / 2)


def best_temperature(score: Callable[[float], float], alpha: float) -> tuple[float, float]:
    """Return the temperature with the lowest score, and its score.

    Args:
        score: Function of a temperature.
        alpha: Power. Temperatures within a factor of 8 of 1 / alpha are tried, on a grid and then continuously.
    """
    grid = np.linspace(-_SPAN, _SPAN, 65)
    start = int(np.argmin([score(float(np.exp(place)) / alpha) for place in grid]))
    bounds = float(grid[max(start - 1, 0)]), float(grid[min(start + 1, len(grid) - 1)])
    found = minimize_scalar(
        lambda place: score(float(np.exp(place)) / alpha),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x)) / alpha, float(found.fun)


def best_temperatures(levels: Levels, target: Array, alpha: float, start: float) -> float:
    """Return the smallest total variation found for one temperature per position, by coordinate descent.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        target: Target distribution (V, ..., V).
        alpha: Power.
        start: Temperature of all positions at the start.
    """
    temperatures = [start] * len(levels)
    least = np.inf
    for _ in range(3):
        for place in range(len(levels)):

            def score(tau: float, place: int = place) -> float:
                trial = [*temperatures[:place], tau, *temperatures[place + 1 :]]
                return variation(np.exp(log_joint(tempered(levels, trial))), target)

            tau, distance = best_temperature(score, alpha)
            if distance < least:
                temperatures[place], least = tau, distance
    return float(least)


def least_mean_variation(distributions: Array) -> float:
    """Return the smallest mean total variation of one distribution from several, by linear programming.

    Args:
        distributions: Probabilities (n, V), one distribution per row.
    """
    number, vocab = distributions.shape
    # Variables are the distribution (V,), and bounds (n, V) of the absolute differences.
    cost = np.concatenate((np.zeros(vocab), np.full(number * vocab, 0.5 / number)))
    ones = np.tile(np.eye(vocab), (number, 1))
    bound = np.eye(number * vocab)
    found = linprog(
        cost,
        A_ub=np.block([[ones, -bound], [-ones, -bound]]),
        b_ub=np.concatenate((distributions.ravel(), -distributions.ravel())),
        A_eq=np.concatenate((np.ones(vocab), np.zeros(number * vocab)))[None],
        b_eq=[1.0],
    )
    return float(found.fun)


def incremental_variances(rows: Array, log_proposal: Array, alpha: float) -> Array:
    """Return the variance of the incremental weight p^alpha / q given each prefix, divided by the squared mean.

    Args:
        rows: Next-token log-probabilities (..., V) of the model p.
        log_proposal: Next-token log-probabilities (..., V) of the proposal distribution q.
        alpha: Power.

    Returns:
        Variances (...).
    """
    second = logsumexp(2 * alpha * rows - log_proposal, axis=-1)
    return np.asarray(np.expm1(second - 2 * logsumexp(alpha * rows, axis=-1)))


def weight_variance(log_probs: Array, log_proposal: Array, alpha: float) -> float:
    """Return the variance of the weight p(x)^alpha / q(x) of a complete text, divided by the squared mean.

    Args:
        log_probs: Log-probabilities (V, ..., V) of the texts under the model p.
        log_proposal: Log-probabilities (V, ..., V) of the texts under the proposal distribution q.
        alpha: Power.
    """
    return float(np.expm1(logsumexp(2 * alpha * log_probs - log_proposal) - 2 * logsumexp(alpha * log_probs)))


def lookahead(levels: Levels, alpha: float, rollouts: int, draws: int, stream: np.random.Generator) -> Levels:
    """Return the model of lookahead, whose candidates are weighted by estimated power sums.

    A token a after a prefix is drawn in proportion to p(a)^alpha times the mean of p(y)^(alpha - 1) over sampled
    completions y. Every text has completions of its own, so that the probability of a token is a mean over completions.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        alpha: Power.
        rollouts: Number of completions per candidate.
        draws: Number of independent sets of completions over which the mean is taken.
        stream: Random generator.

    Returns:
        Log-probabilities of the next token for each prefix.
    """
    averaged = []
    for depth, rows in enumerate(levels):
        log_values = _log_estimates(levels, depth + 1, alpha, rollouts, draws, stream)
        weights = alpha * rows.reshape(-1, VOCAB, 1) + log_values.reshape(-1, VOCAB, draws)
        averaged.append(np.log(np.exp(log_softmax(weights, axis=1)).mean(2)).reshape(rows.shape))
    return averaged


def _log_estimates(
    levels: Levels, depth: int, alpha: float, rollouts: int, draws: int, stream: np.random.Generator
) -> Array:
    """Return logarithms (V^depth, draws) of power sums that are estimated from completions of all prefixes."""
    log_probs = np.zeros((VOCAB,) * depth)
    for rows in levels[depth:]:
        log_probs = log_probs[..., None] + rows
    log_probs = log_probs.reshape(VOCAB**depth, -1)
    if log_probs.shape[1] == 1:
        return np.zeros((len(log_probs), draws))
    estimates = np.empty((len(log_probs), draws))
    for place, row in enumerate(log_probs):
        bounds = np.exp(row).cumsum()
        found = np.searchsorted(bounds / bounds[-1], stream.random((draws, rollouts)), side="right")
        estimates[place] = logsumexp((alpha - 1) * row[found], axis=1) - np.log(rollouts)
    return estimates
