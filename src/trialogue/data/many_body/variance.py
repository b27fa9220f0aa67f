"""How much of a many-body energy varies with single sites, pairs, triples, ..., exactly, at any size."""

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def energy_variances(positions: Numbers, vectors: Numbers, order: int) -> Numbers:
    """Variance (order + 1,) by interaction order of sum over p, q of e_order(j^p_i u^q_(s_i)), uniform tokens s.

    `positions` (P, L), `vectors` (Q, V). The energy is a sum of terms on sets of sites that average to zero over each
    of their sites; these are uncorrelated, and entry r is the sum of the variances of those on r sites. With u = mean +
    rest, the term on a set R is the sum over p, q of prod_R j rest times e_(order - r) of j outside of R times
    mean^(order - r), so that its square is one factor of positions times one of tokens.
    """
    means = vectors.mean(1)
    rests = vectors - means[:, None]
    covariance = rests @ rests.T / vectors.shape[1]
    by_positions = _position_factors(positions, order)
    variances = np.zeros(order + 1)
    for size in range(1, order + 1):
        powers = means ** (order - size)
        by_tokens = powers @ covariance**size @ powers
        variances[size] = max(0.0, float(by_positions[size] * by_tokens))
    return variances


def _position_factors(positions: Numbers, order: int) -> list[float]:
    """Of each size r, the sum over sets R of (sum over p of prod_R j^p times e_(order - r) of j^p outside of R)^2.

    A square is a sum over pairs of vectors p, p', and the sum over sets a coefficient of the product over sites of
    1 + x j j' + y j + z j' + y z j j': of x^r y^(order - r) z^(order - r).
    """
    totals = [0.0] * (order + 1)
    for one in positions:
        # Coefficients of x^r y^a z^b, of which only r + a <= order and r + b <= order are ever needed.
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
