"""Bounds that show why two-dimensional Potts models stay ordered at low temperature (Peierls argument).

In two dimensions, a domain wall is a closed curve around a region with another pattern. A wall of perimeter P
costs an energy of at least P E_min, and there are at most (N - 1) P^2 3^P of them for N patterns (Theorem 2.1
of the document on the Potts chain). Large walls are therefore rare below the temperature E_min / log 3.

In the Ising model, spins are ±1, and each pair of neighbors has the energy -J s s'. A wall costs E_min = 2 J
per unit of length (the document prints J in one place).
"""

import math
from typing import Annotated

from annotated_types import Ge

from trialogue.validation import Count, Positive, validated


@validated
def peierls_free_energy_bound(
    perimeter: Count, min_energy: Positive, temperature: Positive, patterns: Annotated[int, Ge(2)]
) -> float:
    """Return a lower bound on the free energy of a boundary between two patterns on a square lattice (Theorem 2.1).

    The boundary, called a domain wall, is a closed curve of perimeter P. The bound is P E_min - T log[(N - 1) P^2 3^P].

    Args:
        perimeter: Perimeter P of the wall: number of neighboring pairs that it separates.
        min_energy: Smallest energy E_min of a wall per unit of perimeter.
        temperature: Temperature T, in the unit of `min_energy`.
        patterns: Number N of patterns, at least two.
    """
    log_walls = math.log(patterns - 1) + 2 * math.log(perimeter) + perimeter * math.log(3)
    return perimeter * min_energy - temperature * log_walls


@validated
def peierls_temperature(min_energy: Positive) -> float:
    """Return the temperature E_min / log 3, below which large regions with another pattern are rare.

    At this temperature and below, `peierls_free_energy_bound` grows with large perimeters.

    Args:
        min_energy: Smallest energy E_min of a wall per unit of perimeter.
    """
    return min_energy / math.log(3)


@validated
def peierls_magnetisation_bound(temperature: Positive, coupling: Positive = 1.0) -> float:
    """Return a lower bound on the mean spin of the square-lattice Ising model (spontaneous magnetization).

    A domain wall is a closed curve around a region of opposite spins. The bound is 1 - 2 P(a domain wall encloses a
    given site), and at least -1. It sums over walls of all perimeters P, at most (P / 2) 3^(P - 1) each with a
    probability of at most e^{-2 J P / T}. The sum converges for T below 2 J / log 3.

    Args:
        temperature: Temperature T, in the unit of J.
        coupling: Coupling J; the energy of two neighboring spins is -J s s'.
    """
    ratio = 9 * math.exp(-4 * coupling / temperature)
    if ratio >= 1:
        return -1.0
    enclosed = (ratio / (1 - ratio) ** 2 - ratio) / 3
    return max(-1.0, 1 - 2 * enclosed)


@validated
def critical_temperature(coupling: Positive = 1.0) -> float:
    """Return the critical temperature 2 J / log(1 + sqrt 2) of the square-lattice Ising model with coupling J."""
    return 2 * coupling / math.log1p(math.sqrt(2))


@validated
def onsager_magnetisation(temperature: Positive, coupling: Positive = 1.0) -> float:
    """Return the exact mean spin of the square-lattice Ising model (spontaneous magnetization).

    It is (1 - sinh(2 J / T)^-4)^(1/8) below the critical temperature and 0 above.

    Args:
        temperature: Temperature T, in the unit of J.
        coupling: Coupling J; the energy of two neighboring spins is -J s s'.
    """
    if temperature >= critical_temperature(coupling):
        return 0.0
    exponent = 2 * coupling / temperature
    # For large exponents, sinh^-4 is below the resolution of floats near 1.
    return (1 - math.sinh(min(exponent, 100.0)) ** -4) ** 0.125
