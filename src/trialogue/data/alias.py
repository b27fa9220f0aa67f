"""Alias tables: a draw from any finite distribution by one random number and one look-up (Walker 1977).

Of V columns, column c keeps c if a coin is below its threshold, and else gives its alias. An entry packs both into one
word: the threshold above, the alias in the lower bits.
"""

import numpy as np
from numpy.typing import NDArray

from trialogue.arrays import real_tensor
from trialogue.compilation import compiled
from trialogue.errors import InputError
from trialogue.probabilities import checked_probabilities
from trialogue.validation import check, integer_range


def alias_table(distribution: NDArray[np.float64], coin_bits: int, alias_bits: int) -> NDArray[np.uint64]:
    """Entries (contexts, V) of distributions (contexts, V): a threshold in units of 2^-coin_bits above an alias.

    Each probability is met to within V 2^-coin_bits, or the rounding of float64. Raises `InputError` if a
    row is not a probability distribution, or if V columns or a word of 64 bits have no room for the numbers of bits.
    """
    distributions = real_tensor("distribution", distribution, "give probabilities (contexts, V)")
    if distributions.ndim != 2 or not distributions.shape[1]:
        raise InputError("distribution", tuple(distributions.shape), "give probabilities (contexts, V)")
    distribution = checked_probabilities("distribution", distributions, tuple(distributions.shape)).numpy()
    vocab = distribution.shape[1]
    check("alias_bits", alias_bits, integer_range((vocab - 1).bit_length(), 62))
    check("coin_bits", coin_bits, integer_range(1, min(64 - alias_bits, 62 - (vocab - 1).bit_length())))
    whole = vocab << coin_bits
    weights = np.floor(distribution * whole).astype(np.int64)
    weights[np.arange(len(distribution)), distribution.argmax(1)] += whole - weights.sum(1)
    entries = np.empty(weights.shape, np.uint64)
    _pack(weights, entries, coin_bits, alias_bits)
    return entries


@compiled
def _pack(weights: NDArray[np.int64], entries: NDArray[np.uint64], coin_bits: int, alias_bits: int) -> None:
    """Vose's algorithm (1991) in whole numbers: rows of `weights` sum to V * 2^coin_bits, and are used up."""
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
        # What is left is full columns: their own alias, whatever the coin.
        for place in range(larges):
            entries[row, large[place]] = large[place]
