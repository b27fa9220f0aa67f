"""Means and covariances of products of k spins, by Hadamard transforms.

The 2^k values of k spins are indexed by bits, and a bit is set if the spin is -1. The product of the spins in a subset
is then a row of the Hadamard matrix. Energies are the transform of the parameters, and moments of any order are the
transform of the probabilities.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_BITS_AT_ONCE = 6


def hadamard_transform(values: Floats) -> Floats:
    """Return the Hadamard transform of each row of `values` (c, 2^k)."""
    k = values.shape[1].bit_length() - 1
    transformed = values
    # The matrix is a Kronecker product of small ones. Each step transforms the last bits and moves them to the front,
    # so that all bits are back in their places at the end.
    for bits in _split(k):
        transformed = (transformed.reshape(len(values), -1, 1 << bits) @ _hadamard(bits)).swapaxes(1, 2)
    return transformed.reshape(values.shape)


def _split(k: int) -> list[int]:
    """Split k into the fewest nearly equal numbers of at most `_BITS_AT_ONCE`."""
    parts = max(1, -(-k // _BITS_AT_ONCE))
    return [k // parts + (part < k % parts) for part in range(parts)]


class Subsets(NamedTuple):
    """Subsets of one and of two of k spins, as bit patterns from 0 to 2^k - 1."""

    single: Indices  # (k,)
    pair: Indices  # (k(k-1)/2,), for the sites first < second in lexicographic order
    first: Indices
    second: Indices


@cache
def small_subsets(k: int) -> Subsets:
    """Return the subsets of one and of two of k spins."""
    first, second = np.triu_indices(k, 1)
    single = 1 << np.arange(k)
    return Subsets(single, single[first] | single[second], first, second)


@cache
def _hadamard(sites: int) -> Floats:
    matrix: Floats = hadamard(1 << sites, dtype=float)
    return matrix
