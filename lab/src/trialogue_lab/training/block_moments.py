"""Distributions of a block of k spins and their moments, by one transform.

The 2^k completions of a context are indexed by bits, set where the spin is -1, so that the products of spins of a
subset are a row of the Hadamard matrix: energies are the transform of the parameters, and moments of any order that of
the probabilities.
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
    """Hadamard transform of the rows of (c, 2^k): its matrix is the Kronecker product of small ones."""
    k = values.shape[1].bit_length() - 1
    turned = values
    # Each product transforms the last bits and moves them to the front; in the end all are where they were.
    for bits in _split(k):
        turned = (turned.reshape(len(values), -1, 1 << bits) @ _hadamard(bits)).swapaxes(1, 2)
    return turned.reshape(values.shape)


def _split(k: int) -> list[int]:
    """k as a sum of as few numbers of at most `_BITS_AT_ONCE` as there can be, nearly equal."""
    parts = max(1, -(-k // _BITS_AT_ONCE))
    return [k // parts + (part < k % parts) for part in range(parts)]


class Subsets(NamedTuple):
    """Where the subsets of one and of two of k sites stand among the 2^k bit patterns."""

    single: Indices  # (k,)
    pair: Indices  # (k(k-1)/2,) of the sites first < second, lexicographic
    first: Indices
    second: Indices


@cache
def small_subsets(k: int) -> Subsets:
    """The subsets of one and of two of k sites."""
    first, second = np.triu_indices(k, 1)
    single = 1 << np.arange(k)
    return Subsets(single, single[first] | single[second], first, second)


@cache
def _hadamard(sites: int) -> Floats:
    matrix: Floats = hadamard(1 << sites, dtype=float)
    return matrix
