"""Random models of short texts as arrays, with exact distributions of local rules and of p(x)^alpha."""

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


def make_random_levels(horizon: int, seed: int, *names: object) -> Levels:
    """Return a random model of texts of a fixed length.

    All next-token distributions are uniformly random.

    Args:
        horizon: Number of tokens of a text.
        seed: Seed of the model.
        *names: Additional names that determine the random stream.

    Returns:
        Log-probabilities of the next token for each prefix. Entry d has the shape (V,) * (d + 1).
    """
    stream = numpy_generator(seed, "power-sampling", *names)
    shares = (stream.dirichlet(np.ones(VOCAB), VOCAB**depth) for depth in range(horizon))
    return [np.log(rows).reshape((VOCAB,) * (depth + 1)) for depth, rows in enumerate(shares)]


def make_table(levels: Levels) -> Table:
    """Return the model as a `Table`, which the library's samplers accept.

    Args:
        levels: Log-probabilities of the next token for each prefix.
    """
    return Table(lambda prefix: np.exp(levels[len(prefix)][prefix]).tolist(), VOCAB, max_length=len(levels))


def compute_log_joint(levels: Levels) -> Array:
    """Return the log-probability of every text as an array (V, ..., V), one axis per token.

    Args:
        levels: Log-probabilities of the next token for each prefix.
    """
    total = np.zeros(())
    for rows in levels:
        total = total[..., None] + rows
    return total


def compute_log_power_sums(levels: Levels, alpha: float) -> Levels:
    """Compute, for every prefix, the logarithm of the sum of p(y)^alpha over its continuations y.

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


def compute_power_distribution(log_probs: Array, alpha: float) -> Array:
    """Compute the target distribution p(x)^alpha / Z over all texts x.

    Args:
        log_probs: Log-probabilities (V, ..., V) of the texts.
        alpha: Power.

    Returns:
        Normalized probabilities (V, ..., V).
    """
    return np.exp(alpha * log_probs - logsumexp(alpha * log_probs))


def apply_temperatures(levels: Levels, temperatures: Sequence[float]) -> Levels:
    """Return the next-token log-probabilities of a model after applying temperatures.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        temperatures: One temperature per position.
    """
    return [log_softmax(rows / tau, axis=-1) for rows, tau in zip(levels, temperatures, strict=True)]


def compute_variation(first: Array, second: Array) -> float:
    """Return the total variation distance of two arrays of probabilities."""
    return float(np.abs(first - second).sum() / 2)


def find_best_temperature(score: Callable[[float], float], alpha: float) -> tuple[float, float]:
    """Return the temperature that minimizes a score, and the minimum.

    Args:
        score: Function of the temperature that is minimized.
        alpha: Power. Temperatures between 1 / (8 alpha) and 8 / alpha are searched, on a grid and then continuously.
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


def optimize_temperatures(levels: Levels, target: Array, alpha: float, start: float) -> float:
    """Minimize the distance from a target over one temperature per position.

    Coordinate descent changes one temperature at a time.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        target: Target distribution (V, ..., V).
        alpha: Power alpha, which determines the range of temperatures (see `find_best_temperature`).
        start: Temperature of all positions at the start.

    Returns:
        The smallest total variation distance that was found.
    """
    temperatures = [start] * len(levels)
    least = np.inf
    for _ in range(3):
        for place in range(len(levels)):

            def score(tau: float, place: int = place) -> float:
                trial = [*temperatures[:place], tau, *temperatures[place + 1 :]]
                return compute_variation(np.exp(compute_log_joint(apply_temperatures(levels, trial))), target)

            tau, distance = find_best_temperature(score, alpha)
            if distance < least:
                temperatures[place], least = tau, distance
    return float(least)


def minimize_mean_variation(distributions: Array) -> float:
    """Minimize the mean total variation distance of one distribution from several others.

    The minimum is found by linear programming.

    Args:
        distributions: Probabilities (n, V), one distribution per row.

    Returns:
        The minimum.
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


def compute_incremental_variances(rows: Array, log_proposal: Array, alpha: float) -> Array:
    """Return the relative variance of the importance weight p^alpha / q of the next token.

    The relative variance is variance / mean^2 under the proposal q.

    Args:
        rows: Next-token log-probabilities (..., V) of the model p.
        log_proposal: Next-token log-probabilities (..., V) of the proposal distribution q.
        alpha: Power.

    Returns:
        Relative variances (...), one per prefix.
    """
    second = logsumexp(2 * alpha * rows - log_proposal, axis=-1)
    return np.asarray(np.expm1(second - 2 * logsumexp(alpha * rows, axis=-1)))


def compute_weight_variance(log_probs: Array, log_proposal: Array, alpha: float) -> float:
    """Return the relative variance of the importance weight p(x)^alpha / q(x) of a text x.

    The relative variance is variance / mean^2 under the proposal q.

    Args:
        log_probs: Log-probabilities (V, ..., V) of the texts under the model p.
        log_proposal: Log-probabilities (V, ..., V) of the texts under the proposal distribution q.
        alpha: Power.
    """
    return float(np.expm1(logsumexp(2 * alpha * log_probs - log_proposal) - 2 * logsumexp(alpha * log_probs)))


def compute_lookahead_levels(
    levels: Levels, alpha: float, rollouts: int, draws: int, stream: np.random.Generator
) -> Levels:
    """Return the model that lookahead samples from, with next-token probabilities estimated by sampled completions.

    A token a after a prefix has a probability proportional to p(a)^alpha * mean_y p(y)^(alpha - 1), for completions y
    sampled from the model p. The completions are sampled anew for every text, so that the probability of a token is a
    mean over sets of completions.

    Args:
        levels: Log-probabilities of the next token for each prefix.
        alpha: Power.
        rollouts: Number of completions y per candidate token.
        draws: Number of independent sets of completions over which the mean is taken.
        stream: Random generator.

    Returns:
        Log-probabilities of the next token for each prefix.
    """
    averaged = []
    for depth, rows in enumerate(levels):
        log_values = _estimate_log_power_sums(levels, depth + 1, alpha, rollouts, draws, stream)
        weights = alpha * rows.reshape(-1, VOCAB, 1) + log_values.reshape(-1, VOCAB, draws)
        averaged.append(np.log(np.exp(log_softmax(weights, axis=1)).mean(2)).reshape(rows.shape))
    return averaged


def _estimate_log_power_sums(
    levels: Levels, depth: int, alpha: float, rollouts: int, draws: int, stream: np.random.Generator
) -> Array:
    """Estimate the log power sum of every prefix from sampled completions.

    The result (V^depth, draws) has independent estimates in each column.
    """
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
