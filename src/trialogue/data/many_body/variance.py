"""Exact variance of a many-body energy by interaction order."""

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def energy_variances(positions: Numbers, vectors: Numbers, order: int) -> Numbers:
    """Return the variance of a many-body energy by the number of interacting sites, for uniformly random tokens.

    The energy is a sum of uncorrelated contributions, one for each set of sites. Entry n of the result adds
    the variances of all sets of n sites.

    Args:
        positions: Position vectors (P, L), one per row, with one entry per site.
        vectors: Token vectors (Q, V), one per row, with one entry per token.
        order: Number of sites that the energy couples.

    Returns:
        Variances (order + 1,).
    """
    # Let m be the mean of a token vector u over the tokens, and r = u - m. The contribution of a set R of n sites is
    # the sum, over pairs of j and u, of three factors: the product over i in R of j_i r_(s_i), the sum over all sets of
    # order - n sites outside R of the product of their j_i, and m^(order - n). Its variance is a factor for the
    # positions times a factor for the tokens, both summed over pairs of vectors.
    means = vectors.mean(1)
    centered = vectors - means[:, None]
    covariance = centered @ centered.T / vectors.shape[1]
    by_positions = _position_factors(positions, order)
    variances = np.zeros(order + 1)
    for size in range(1, order + 1):
        powers = means ** (order - size)
        by_tokens = powers @ covariance**size @ powers
        variances[size] = max(0.0, float(by_positions[size] * by_tokens))
    return variances


def _position_factors(positions: Numbers, order: int) -> list[float]:
    """Return the part of the variance that depends on the positions, for 0, ..., `order` sites."""
    # The square is a sum over pairs p, p'. For each pair, the sum over sets is the coefficient of
    # x^r y^(order - r) z^(order - r) in the product over sites of 1 + x j j' + y j + z j' + y z j j'.
    totals = [0.0] * (order + 1)
    for one in positions:
        # Coefficients of x^r y^a z^b. Only those with r + a <= order and r + b <= order are used.
        sums = np.zeros((order + 1, order + 1, order + 1, len(positions)))
        sums[0, 0, 0] = 1.0
        for site, entry in enumerate(one):
            others = positions[:, site]
            before = sums.copy()
            sums[1:] += entry * others * before[:-1]
            sums[:, 1:] += entry * before[:, :-1]
            sums[:, :, 1:] += others * before[:, :, :-1]
            sums[:, 1:, 1:] += entry * others * before[:, :-1, :-1]
        for size in range(order + 1):
            totals[size] += math.fsum(sums[size, order - size, order - size])
    return totals
