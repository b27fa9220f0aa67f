"""Moments of the distributions of a block of k spins, by Hadamard transforms.

The 2^k completions of a context are indexed by bits, and a bit is set if the spin is -1. The products of the spins in a
subset are then a row of the Hadamard matrix. Energies are the transform of the parameters, and moments of any order are
the transform of the probabilities.
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
    """Return the fewest nearly equal numbers, of at most `_BITS_AT_ONCE`, whose sum is k."""
    parts = max(1, -(-k // _BITS_AT_ONCE))
    return [k // parts + (part < k % parts) for part in range(parts)]


class Subsets(NamedTuple):
    """Indices of the subsets of one and of two of k sites among the 2^k bit patterns."""

    single: Indices  # (k,)
    pair: Indices  # (k(k-1)/2,), for the sites first < second in lexicographic order
    first: Indices
    second: Indices


@cache
def small_subsets(k: int) -> Subsets:
    """Return the subsets of one and of two of k sites."""
    first, second = np.triu_indices(k, 1)
    single = 1 << np.arange(k)
    return Subsets(single, single[first] | single[second], first, second)


@cache
def _hadamard(sites: int) -> Floats:
    matrix: Floats = hadamard(1 << sites, dtype=float)
    return matrix
