"""Peierls argument in two dimensions, where the energy of a wall grows with its length and order survives.

Theorem 2.1 of the document on the Potts chain: a closed wall of perimeter P costs at least P E_min, and there
are at most (N - 1) P^2 3^P walls. Large walls are suppressed below T = E_min / log 3. In the Ising model with
energy -J s s' and spins ±1, a wall costs E_min = 2 J per bond (the document prints J in one place). The
argument then bounds the magnetization, whose exact value is known (Onsager 1944, Yang 1952). All results hold
in equilibrium.
"""

import math
from typing import Annotated

from annotated_types import Ge

from trialogue.validation import Count, Positive, validated


@validated
def peierls_free_energy_bound(
    perimeter: Count, min_energy: Positive, temperature: Positive, patterns: Annotated[int, Ge(2)]
) -> float:
    """Return P E_min - T log[(N - 1) P^2 3^P], a lower bound on the free energy of a wall (Theorem 2.1).

    Args:
        perimeter: Perimeter P.
        min_energy: Smallest energy E_min per unit of wall.
        temperature: Temperature T.
        patterns: Number N of patterns, at least two.
    """
    log_walls = math.log(patterns - 1) + 2 * math.log(perimeter) + perimeter * math.log(3)
    return perimeter * min_energy - temperature * log_walls


@validated
def peierls_temperature(min_energy: Positive) -> float:
    """Return E_min / log 3, up to which `peierls_free_energy_bound` grows with the perimeter."""
    return min_energy / math.log(3)


@validated
def peierls_magnetisation_bound(temperature: Positive, coupling: Positive = 1.0) -> float:
    """Return a lower bound on the spontaneous magnetization of the square-lattice Ising model.

    The bound is 1 - 2 P(a site lies within a wall), at least -1. At most (P / 2) 3^(P - 1) walls of perimeter
    P = 4, 6, ... enclose the site, each with probability at most e^{-2 J P / T}. The sum converges below
    `peierls_temperature` of 2 J. The bound is positive up to about three quarters of this temperature.
    """
    ratio = 9 * math.exp(-4 * coupling / temperature)
    if ratio >= 1:
        return -1.0
    enclosed = (ratio / (1 - ratio) ** 2 - ratio) / 3
    return max(-1.0, 1 - 2 * enclosed)


@validated
def critical_temperature(coupling: Positive = 1.0) -> float:
    """Return T_c = 2 J / log(1 + sqrt 2) of the square-lattice Ising model."""
    return 2 * coupling / math.log1p(math.sqrt(2))


@validated
def onsager_magnetisation(temperature: Positive, coupling: Positive = 1.0) -> float:
    """Return the magnetization (1 - sinh(2 J / T)^-4)^(1/8) of a site below T_c, and 0 above."""
    if temperature >= critical_temperature(coupling):
        return 0.0
    exponent = 2 * coupling / temperature
    # sinh^-4 of a large number is smaller than what 1 can be told apart from.
    return (1 - math.sinh(min(exponent, 100.0)) ** -4) ** 0.125
