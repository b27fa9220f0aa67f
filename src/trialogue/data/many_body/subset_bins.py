"""Fields of a many-body distribution from its tensors: work C(L - 1, order - 1) an update, whatever the rank.

The field of a site sums J over the sets of order - 1 other sites, times U of their tokens. As U is symmetric, entries
of J are added up by the multiset of tokens that their sites show, and U multiplies each multiset once.
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
    """Sums of `weights` by multiset of tokens, to `bins`.

    The sets of other sites are `heads` (n, order - 2), increasing, and one more site beyond each; `weights` lie in that
    order. Multiset number `bin_of[x]` belongs to tokens x, read in base V.
    """
    for place in range(site):
        others[place] = tokens[place]
    for place in range(site + 1, len(tokens)):
        others[place - 1] = tokens[place]
    bins[:] = 0.0
    at = 0
    for head in range(len(heads)):
        first, last = 0, -1
        for place in range(heads.shape[1]):
            last = heads[head, place]
            first = (first + others[last]) * vocab
        numbers = bin_of[first : first + vocab]
        for place in range(last + 1, len(others)):
            bins[numbers[others[place]]] += weights[at]
            at += 1


@compiled_sums
def multiply(by_value: Numbers, bins: Numbers, field: Numbers) -> None:
    """The field (V,) from `by_value` (V, bins)."""
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
    """Fields (rows, m, V) at the `sites` (rows, m) of rows first..last of `tokens` (rows, L)."""
    others, bins = np.empty(tokens.shape[1] - 1, np.int64), np.empty(by_value.shape[1])
    for row in range(first, last):
        for place in range(sites.shape[1]):
            site = sites[row, place]
            fill_bins(tokens[row], site, weights[site], heads, bin_of, len(by_value), others, bins)
            multiply(by_value, bins, fields[row, place])


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
    """Draw every site of rows first..last of `tokens` (rows, L) given the others, in order, so many times."""
    others, bins = np.empty(tokens.shape[1] - 1, np.int64), np.empty(by_value.shape[1])
    field = np.empty(len(by_value))
    for row in range(first, last):
        for _ in range(sweeps):
            for site in range(tokens.shape[1]):
                fill_bins(tokens[row], site, weights[site], heads, bin_of, len(by_value), others, bins)
                multiply(by_value, bins, field)
                tokens[row, site] = invert(next_uniform(keys, counters, row), np.exp(field - field.max()))


class SubsetBins(CompiledFields):
    """Fields -dE by value of a site, by sets of sites; `positions` (P, L), `vectors` (Q, V), any order from 2 on.

    A field is `factor` times the sum over sets of order - 1 other sites of J U.
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
        every = product(range(vocab), repeat=order - 1)
        bin_of = np.array([number[tuple(sorted(tokens))] for tokens in every], np.int32)
        by_value = np.ascontiguousarray(vectors.T @ vectors[:, np.array(multisets)].prod(2))
        super().__init__(fill_fields, sweep_rows, (weights, heads, bin_of, by_value), vocab, weights.shape[1])

    @staticmethod
    def nanoseconds(positions: Numbers, vectors: Numbers, order: int) -> float:
        """About what an update costs; infinite where too much would be laid out."""
        sites, vocab = positions.shape[1], vectors.shape[1]
        subsets, multisets = math.comb(sites - 1, order - 1), math.comb(vocab + order - 2, order - 1)
        laid_out = max(sites * subsets, vocab ** (order - 1), vocab * multisets)
        # What making the tables multiplies.
        fits = laid_out <= ENTRIES and max(len(positions) * subsets, len(vectors) * multisets) <= 2 * ENTRIES
        return 2.0 * subsets + 0.1 * vocab * multisets if fits else math.inf
