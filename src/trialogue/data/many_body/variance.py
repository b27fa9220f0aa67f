"""Exact variance of a many-body energy by interaction order."""

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def energy_variances(positions: Numbers, vectors: Numbers, order: int) -> Numbers:
    """Return the variance of a many-body energy for uniformly random tokens s, by interaction order.

    The energy is the sum over p and q of the elementary symmetric sum e_order of the values j^p_i u^q_(s_i). The
    sum e_m is the sum, over all sets of m sites, of the product of their values. The energy is decomposed into
    uncorrelated terms on sets of sites, each with mean zero over every site of its set.

    Let m^q be the mean of u^q over tokens and r^q = u^q - m^q. The term on a set R of n sites is the sum over p
    and q of three factors: the product over i in R of j^p_i r^q_(s_i), the sum e_(order - n) of j^p over the
    sites outside R, and (m^q)^(order - n). Its variance is a factor for the positions times a factor for the
    tokens, both summed over pairs of vectors.

    Args:
        positions: Vectors j^p (P, L), one entry per site.
        vectors: Vectors u^q (Q, V), one entry per token.
        order: Number of sites that the energy couples.

    Returns:
        Variances (order + 1,). Entry n is the sum of the variances of the terms on n sites.
    """
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
    """Return the factors for the positions (see `energy_variances`), one for each size r of the set R.

    A factor is the sum over sets R of (sum over p of prod_R j^p times e_(order - r) of j^p outside R)^2.
    """
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
