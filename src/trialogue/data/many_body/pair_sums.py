"""Fields of a many-body distribution from power sums of its rank-one terms: work P Q an update, for low ranks.

Of the pair of vectors (p, q), site i contributes B_i = j^p_i u^q_(s_i), and the distribution needs the elementary
symmetric sums e_m of B over the sites, up to the order. Leaving a site out takes e_m - B_i e_(m-1) of the rest,
entering it adds.
"""

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled, compiled_sums
from trialogue.data.many_body.compiled_fields import ENTRIES, CompiledFields, Numbers, Tokens
from trialogue.randomness import invert, next_uniform

_VECTOR = 8


@compiled_sums
def sum_up(tokens: Tokens, contributions: Numbers, sums: Numbers) -> None:
    """e_1, e_2, e_3 (3, pairs) of one row, from the `contributions` (L, V, pairs) of its tokens (L,)."""
    sums[:] = 0.0
    one, two, three = sums[0], sums[1], sums[2]
    for site in range(len(tokens)):
        added = contributions[site, tokens[site]]
        for pair in range(len(added)):
            three[pair] += added[pair] * two[pair]
            two[pair] += added[pair] * one[pair]
            one[pair] += added[pair]


@compiled_sums
def leave(sums: Numbers, left: Numbers, rest: Numbers) -> None:
    """The same sums without a site that contributes `left` (pairs,), to `rest` (3, pairs)."""
    one, two, three = sums[0], sums[1], sums[2]
    first, second, third = rest[0], rest[1], rest[2]
    for pair in range(len(left)):
        below = one[pair] - left[pair]
        above = two[pair] - left[pair] * below
        first[pair], second[pair], third[pair] = below, above, three[pair] - left[pair] * above


@compiled_sums
def enter(sums: Numbers, left: Numbers, entered: Numbers, rest: Numbers) -> None:
    """Put a site that contributed `left` back with `entered`, given the sums of the `rest`."""
    one, two, three = sums[0], sums[1], sums[2]
    first, second = rest[0], rest[1]
    for pair in range(len(left)):
        more = entered[pair] - left[pair]
        one[pair] += more
        two[pair] += more * first[pair]
        three[pair] += more * second[pair]


@compiled_sums
def field_of(rest: Numbers, positions: Numbers, tokens: Numbers, mixed: Numbers, field: Numbers) -> None:
    """The field (V,) of a site of entries `positions` (P,), from e_(order - 1) of the rest (P * Q,).

    `tokens` (V, Q) are the vectors of tokens, by token.
    """
    mixed[:] = 0.0
    width = len(mixed)
    for p in range(len(positions)):
        row, weight = rest[p * width : (p + 1) * width], positions[p]
        for q in range(width):
            mixed[q] += weight * row[q]
    for value in range(len(tokens)):
        row, total = tokens[value], 0.0
        for q in range(width):
            total += row[q] * mixed[q]
        field[value] = total


@compiled
def fill_fields(
    first: int,
    last: int,
    tokens: Tokens,
    sites: Tokens,
    contributions: Numbers,
    positions: Numbers,
    vectors: Numbers,
    order: int,
    fields: Numbers,
) -> None:
    """Fields (rows, m, V) at the `sites` (rows, m) of rows first..last of `tokens` (rows, L)."""
    sums, rest = np.empty((3, contributions.shape[2])), np.empty((3, contributions.shape[2]))
    mixed = np.empty(vectors.shape[1])
    for row in range(first, last):
        sum_up(tokens[row], contributions, sums)
        for place in range(sites.shape[1]):
            site = sites[row, place]
            leave(sums, contributions[site, tokens[row, site]], rest)
            field_of(rest[order - 2], positions[site], vectors, mixed, fields[row, place])


@compiled
def sweep_rows(
    first: int,
    last: int,
    tokens: Tokens,
    keys: NDArray[np.int64],
    counters: NDArray[np.int64],
    contributions: Numbers,
    positions: Numbers,
    vectors: Numbers,
    order: int,
    sweeps: int,
) -> None:
    """Draw every site of rows first..last of `tokens` (rows, L) given the others, in order, so many times."""
    sums, rest = np.empty((3, contributions.shape[2])), np.empty((3, contributions.shape[2]))
    mixed, field = np.empty(vectors.shape[1]), np.empty(len(vectors))
    for row in range(first, last):
        for _ in range(sweeps):
            # Anew in every sweep, so that rounding does not add up.
            sum_up(tokens[row], contributions, sums)
            for site in range(tokens.shape[1]):
                left = contributions[site, tokens[row, site]]
                leave(sums, left, rest)
                field_of(rest[order - 2], positions[site], vectors, mixed, field)
                drawn = invert(next_uniform(keys, counters, row), np.exp(field - field.max()))
                if drawn != tokens[row, site]:
                    enter(sums, left, contributions[site, drawn], rest)
                    tokens[row, site] = drawn


class PairSums(CompiledFields):
    """Fields -dE by value of a site, by elementary symmetric sums; `positions` (P, L), `vectors` (Q, V), order 2 to 4.

    A field is `factor` times the sum over p, q of j^p_i u^q_a e_(order - 1) of the other sites.
    """

    def __init__(self, positions: Numbers, vectors: Numbers, order: int, factor: float) -> None:
        rank = len(vectors)
        padded = np.zeros((vectors.shape[1], -(-rank // _VECTOR) * _VECTOR))
        padded[:, :rank] = vectors.T
        by_site = np.ascontiguousarray(positions.T)
        products = by_site[:, None, :, None] * padded[None, :, None, :]
        contributions = products.reshape(len(by_site), len(padded), -1)
        arrays = (contributions, factor * by_site, padded, order)
        super().__init__(fill_fields, sweep_rows, arrays, len(padded), contributions.shape[2])

    @staticmethod
    def nanoseconds(positions: Numbers, vectors: Numbers, order: int) -> float:
        """About what an update costs; infinite where too much would be laid out."""
        del order
        pairs = len(positions) * (len(vectors) + _VECTOR - 1)
        fits = positions.shape[1] * vectors.shape[1] * pairs <= ENTRIES
        return 1.3 * pairs if fits else float("inf")
