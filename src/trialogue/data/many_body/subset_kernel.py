"""Gibbs sampling of a many-body distribution by sums over sets of sites.

Updating a site costs C(L - 1, order - 1) operations. The energy is a sum, over sets of `order` sites, of an
entry of J for the sites times an entry of U for their tokens. Because U is symmetric, the entries of J are
first summed over all sets of sites with the same multiset of tokens. Each sum is then multiplied by an entry
of U once.
"""

import math
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled, compiled_sums
from trialogue.data.many_body.many_body_kernel import ENTRIES, ManyBodyKernel, Numbers, Tokens
from trialogue.randomness import invert, next_uniform


@compiled
def sum_weights_by_tokens(
    tokens: Tokens,
    site: int,
    weights: Numbers,
    heads: Tokens,
    bin_of: NDArray[np.int32],
    vocab: int,
    others: Tokens,
    bins: Numbers,
) -> None:
    """Sum the weights of all sets of order - 1 other sites, grouped by the multiset of their tokens.

    Args:
        tokens: Tokens (L,).
        site: Excluded site.
        weights: Weight of each set, in lexicographic order of the sets. Sites are numbered without the
            excluded site.
        heads: Sets (n, order - 2) in increasing order. Each is extended by every larger site.
        bin_of: Index of the multiset of order - 1 tokens, for each tuple of tokens as a base-V number.
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
def fill_field(by_value: Numbers, bins: Numbers, field: Numbers) -> None:
    """Compute the field of a site as a product of a matrix and a vector.

    Args:
        by_value: Entries (V, n) of U for each value of the site and each multiset of tokens of the other sites.
        bins: Sums (n,) of the weights by multiset.
        field: Output (V,).
    """
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
    """Compute the unnormalized conditional log-probabilities ("fields") of sites, for rows `first` to `last` - 1.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Sequences (rows, L).
        sites: Indices (rows, m) of the sites of each row.
        weights: Weights (L, sets) of the sets of other sites, for each site.
        heads: Sets (n, order - 2) of other sites in increasing order.
        bin_of: Index of the multiset for each tuple of order - 1 tokens as a base-V number.
        by_value: Entries (V, multisets) of U.
        fields: Output (rows, m, V).
    """
    others, bins = np.empty(tokens.shape[1] - 1, np.int64), np.empty(by_value.shape[1])
    for row in range(first, last):
        for column in range(sites.shape[1]):
            site = sites[row, column]
            sum_weights_by_tokens(
                tokens[row], site, weights[site], heads, bin_of, len(by_value), others, bins
            )
            fill_field(by_value, bins, fields[row, column])


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
    """Sample every site from its conditional distribution, in place, for rows `first` to `last` - 1.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Sequences (rows, L), modified in place.
        keys: Keys (rows,) of the random streams.
        counters: Counters (rows,) of the random streams, advanced in place.
        weights: Weights (L, sets) of the sets of other sites, for each site.
        heads: Sets (n, order - 2) of other sites in increasing order.
        bin_of: Index of the multiset for each tuple of order - 1 tokens as a base-V number.
        by_value: Entries (V, multisets) of U.
        sweeps: Number of passes over all sites.
    """
    others, bins = np.empty(tokens.shape[1] - 1, np.int64), np.empty(by_value.shape[1])
    field = np.empty(len(by_value))
    for row in range(first, last):
        for _ in range(sweeps):
            for site in range(tokens.shape[1]):
                sum_weights_by_tokens(
                    tokens[row], site, weights[site], heads, bin_of, len(by_value), others, bins
                )
                fill_field(by_value, bins, field)
                tokens[row, site] = invert(next_uniform(keys, counters, row), np.exp(field - field.max()))


class SubsetKernel(ManyBodyKernel):
    """Compiled Gibbs sampler of a many-body distribution, which sums over sets of sites. Faster for short sequences.

    See the module for the method.

    Args:
        positions: Vectors (P, L) that define J, one entry per site.
        vectors: Vectors (Q, V) that define U, one entry per token.
        order: Number of interacting sites, at least 2.
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
        """Estimate the time to update one site in nanoseconds, or infinity if the tables would be too large.

        Args:
            positions: Vectors j^p (P, L), one entry per site.
            vectors: Vectors u^q (Q, V), one entry per token.
            order: Number of sites that the energy couples.
        """
        sites, vocab = positions.shape[1], vectors.shape[1]
        subsets, multisets = math.comb(sites - 1, order - 1), math.comb(vocab + order - 2, order - 1)
        table_size = max(sites * subsets, vocab ** (order - 1), vocab * multisets)
        # Size of the temporary arrays in `__init__`.
        temporary_size = max(len(positions) * subsets, len(vectors) * multisets)
        fits = table_size <= ENTRIES and temporary_size <= 2 * ENTRIES
        return 2.0 * subsets + 0.1 * vocab * multisets if fits else math.inf
