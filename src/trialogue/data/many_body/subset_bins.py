"""Fields of a many-body distribution from its tensors, with cost C(L - 1, order - 1) per update for any rank.

The field of a site is the sum over sets of order - 1 other sites of J times U of their tokens. U is symmetric. The
entries of J are therefore summed by the multiset of tokens of their sites first, and each sum is multiplied by U once.
"""

import math
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled, compiled_sums
from trialogue.data.many_body.compiled_fields import ENTRIES, CompiledFields, Numbers, Tokens
from trialogue.randomness import invert, next_uniform


@compiled
def fill_bins(
    tokens: Tokens,
    site: int,
    weights: Numbers,
    heads: Tokens,
    bin_of: NDArray[np.int32],
    vocab: int,
    others: Tokens,
    bins: Numbers,
) -> None:
    """Sum the weights of all sets of other sites by the multiset of their tokens.

    Args:
        tokens: Tokens (L,).
        site: Site that is left out.
        weights: Weight of each set, in lexicographic order of the sets.
        heads: Sets (n, order - 2) in increasing order. Each is extended by every larger site.
        bin_of: Index of the multiset of some tokens, by their base-V number.
        vocab: Number V of tokens.
        others: Buffer (L - 1,).
        bins: Output, one sum per multiset.
    """
    for other in range(site):
        others[other] = tokens[other]
    for other in range(site + 1, len(tokens)):
        others[other - 1] = tokens[other]
    bins[:] = 0.0
    index = 0
    for head in range(len(heads)):
        first, last = 0, -1
        for column in range(heads.shape[1]):
            last = heads[head, column]
            first = (first + others[last]) * vocab
        numbers = bin_of[first : first + vocab]
        for other in range(last + 1, len(others)):
            bins[numbers[others[other]]] += weights[index]
            index += 1


@compiled_sums
def multiply(by_value: Numbers, bins: Numbers, field: Numbers) -> None:
    """Compute the field (V,) as the product of `by_value` (V, n) and `bins` (n,)."""
    for value in range(len(by_value)):
        row, total = by_value[value], 0.0
        for number in range(len(bins)):
            total += row[number] * bins[number]
        field[value] = total


@compiled
def fill_fields(
    first: int,
    last: int,
    tokens: Tokens,
    sites: Tokens,
    weights: Numbers,
    heads: Tokens,
    bin_of: NDArray[np.int32],
    by_value: Numbers,
    fields: Numbers,
) -> None:
    """Compute the fields (rows, m, V) at the `sites` (rows, m) of `tokens` (rows, L) for rows `first` to `last`."""
    others, bins = np.empty(tokens.shape[1] - 1, np.int64), np.empty(by_value.shape[1])
    for row in range(first, last):
        for column in range(sites.shape[1]):
            site = sites[row, column]
            fill_bins(tokens[row], site, weights[site], heads, bin_of, len(by_value), others, bins)
            multiply(by_value, bins, fields[row, column])


@compiled
def sweep_rows(
    first: int,
    last: int,
    tokens: Tokens,
    keys: NDArray[np.int64],
    counters: NDArray[np.int64],
    weights: Numbers,
    heads: Tokens,
    bin_of: NDArray[np.int32],
    by_value: Numbers,
    sweeps: int,
) -> None:
    """Sample every site of rows `first` to `last` of `tokens` (rows, L) in order, `sweeps` times."""
    others, bins = np.empty(tokens.shape[1] - 1, np.int64), np.empty(by_value.shape[1])
    field = np.empty(len(by_value))
    for row in range(first, last):
        for _ in range(sweeps):
            for site in range(tokens.shape[1]):
                fill_bins(tokens[row], site, weights[site], heads, bin_of, len(by_value), others, bins)
                multiply(by_value, bins, field)
                tokens[row, site] = invert(next_uniform(keys, counters, row), np.exp(field - field.max()))


class SubsetBins(CompiledFields):
    """Fields from sums over sets of sites, for short sequences.

    A field is `factor` times the sum over sets of order - 1 other sites of J U.

    Args:
        positions: Vectors j (P, L).
        vectors: Vectors u (Q, V).
        order: Order of the energy, at least 2.
        factor: Factor of the fields.
    """

    def __init__(self, positions: Numbers, vectors: Numbers, order: int, factor: float) -> None:
        sites, vocab = positions.shape[1], vectors.shape[1]
        heads = np.array(list(combinations(range(sites - 1), order - 2)), np.int64)
        members = np.array(list(combinations(range(sites - 1), order - 1)), np.int64)
        weights = np.empty((sites, len(members)))
        for site in range(sites):
            others = np.delete(positions, site, axis=1)
            weights[site] = factor * positions[:, site] @ others[:, members].prod(2)
        multisets = list(combinations_with_replacement(range(vocab), order - 1))
        number = {tokens: index for index, tokens in enumerate(multisets)}
        token_tuples = product(range(vocab), repeat=order - 1)
        bin_of = np.array([number[tuple(sorted(tokens))] for tokens in token_tuples], np.int32)
        by_value = np.ascontiguousarray(vectors.T @ vectors[:, np.array(multisets)].prod(2))
        super().__init__(fill_fields, sweep_rows, (weights, heads, bin_of, by_value), vocab, weights.shape[1])

    @staticmethod
    def nanoseconds(positions: Numbers, vectors: Numbers, order: int) -> float:
        """Return the approximate time of an update, or infinity if the tables would be too large."""
        sites, vocab = positions.shape[1], vectors.shape[1]
        subsets, multisets = math.comb(sites - 1, order - 1), math.comb(vocab + order - 2, order - 1)
        table_size = max(sites * subsets, vocab ** (order - 1), vocab * multisets)
        # Size of the temporary arrays in `__init__`.
        temporary_size = max(len(positions) * subsets, len(vectors) * multisets)
        fits = table_size <= ENTRIES and temporary_size <= 2 * ENTRIES
        return 2.0 * subsets + 0.1 * vocab * multisets if fits else math.inf
