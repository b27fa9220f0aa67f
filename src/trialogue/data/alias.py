"""Alias tables for fast sampling from a finite distribution (Walker 1977).

A table of a distribution over V values has V columns. Each column c has a threshold and an alias, which is one of the V
values. To sample, choose a column c at random, and return c if a second random number (the coin) is below the threshold
of the column. Otherwise return its alias. An entry stores the threshold in the upper bits and the alias in the lower
bits of one word.
"""

import numpy as np
from numpy.typing import NDArray

from trialogue.arrays import real_tensor
from trialogue.compilation import compiled
from trialogue.errors import InputError
from trialogue.probabilities import validate_probabilities
from trialogue.validation import check, integer_range


def alias_table(distribution: NDArray[np.float64], coin_bits: int, alias_bits: int) -> NDArray[np.uint64]:
    """Build a table for fast sampling from each of several distributions (alias method, Walker 1977).

    The docstring of this module describes the format of a table. Probabilities are rounded, with an absolute error of
    at most V 2^-coin_bits.

    Args:
        distribution: Probabilities (contexts, V), one distribution per row.
        coin_bits: Number of bits of a threshold, and of the random number that is compared with it.
        alias_bits: Number of bits of an alias.

    Returns:
        Entries (contexts, V) uint64, one column per value, with the threshold in units of 2^-coin_bits.

    Raises:
        InputError: If a row is not a probability distribution, or a number of bits is out of range.
    """
    distributions = real_tensor("distribution", distribution, "give probabilities (contexts, V)")
    if distributions.ndim != 2 or not distributions.shape[1]:
        raise InputError("distribution", tuple(distributions.shape), "give probabilities (contexts, V)")
    distribution = validate_probabilities("distribution", distributions, tuple(distributions.shape)).numpy()
    vocab = distribution.shape[1]
    check("alias_bits", alias_bits, integer_range((vocab - 1).bit_length(), 62))
    check("coin_bits", coin_bits, integer_range(1, min(64 - alias_bits, 62 - (vocab - 1).bit_length())))
    total = vocab << coin_bits
    weights = np.floor(distribution * total).astype(np.int64)
    weights[np.arange(len(distribution)), distribution.argmax(1)] += total - weights.sum(1)
    entries = np.empty(weights.shape, np.uint64)
    _pack(weights, entries, coin_bits, alias_bits)
    return entries


@compiled
def _pack(weights: NDArray[np.int64], entries: NDArray[np.uint64], coin_bits: int, alias_bits: int) -> None:
    """Fill each row of `entries` with the alias table for a row of `weights` (algorithm of Vose 1991).

    The weights are integers with the sum V * 2^coin_bits in each row, and are overwritten. An entry contains the
    threshold of a column in its upper bits, and the alias in its lower `alias_bits` bits.
    """
    vocab = weights.shape[1]
    full = 1 << coin_bits
    small, large = np.empty(vocab, np.int64), np.empty(vocab, np.int64)
    for row in range(len(weights)):
        weight = weights[row]
        smalls, larges = 0, 0
        for token in range(vocab):
            if weight[token] < full:
                small[smalls] = token
                smalls += 1
            else:
                large[larges] = token
                larges += 1
        while smalls:
            smalls -= 1
            larges -= 1
            below, above = small[smalls], large[larges]
            entries[row, below] = weight[below] << alias_bits | above
            weight[above] -= full - weight[below]
            if weight[above] < full:
                small[smalls] = above
                smalls += 1
            else:
                larges += 1
        # The remaining columns are full, so each is its own alias.
        for index in range(larges):
            entries[row, large[index]] = large[index]
