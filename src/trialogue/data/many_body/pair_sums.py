"""Fields of a many-body distribution from elementary symmetric sums, with cost P Q per update.

For the pair of vectors (p, q), site i contributes B_i = j^p_i u^q_(s_i). The fields require the elementary symmetric
sums e_m of B over the sites. Without site i, they are e_m - B_i e_(m-1), where e_(m-1) is a sum without site i.
"""

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled, compiled_sums
from trialogue.data.many_body.compiled_fields import ENTRIES, CompiledFields, Numbers, Tokens
from trialogue.randomness import invert, next_uniform

_VECTOR = 8


@compiled_sums
def elementary_sums(tokens: Tokens, contributions: Numbers, sums: Numbers) -> None:
    """Compute the sums e_1, e_2 and e_3 of one row.

    Args:
        tokens: Tokens (L,).
        contributions: Contribution (L, V, pairs) of each site and token.
        sums: Output (3, pairs).
    """
    sums[:] = 0.0
    one, two, three = sums[0], sums[1], sums[2]
    for site in range(len(tokens)):
        added = contributions[site, tokens[site]]
        for pair in range(len(added)):
            three[pair] += added[pair] * two[pair]
            two[pair] += added[pair] * one[pair]
            one[pair] += added[pair]


@compiled_sums
def remove_site(sums: Numbers, old: Numbers, rest: Numbers) -> None:
    """Compute the sums without one site.

    Args:
        sums: Sums (3, pairs) over all sites.
        old: Contribution (pairs,) of the site.
        rest: Output (3, pairs).
    """
    one, two, three = sums[0], sums[1], sums[2]
    first, second, third = rest[0], rest[1], rest[2]
    for pair in range(len(old)):
        below = one[pair] - old[pair]
        above = two[pair] - old[pair] * below
        first[pair], second[pair], third[pair] = below, above, three[pair] - old[pair] * above


@compiled_sums
def replace_site(sums: Numbers, old: Numbers, new: Numbers, rest: Numbers) -> None:
    """Update the sums in place after a site changes its token.

    Args:
        sums: Sums (3, pairs) over all sites.
        old: Old contribution (pairs,) of the site.
        new: New contribution (pairs,) of the site.
        rest: Sums (3, pairs) without the site.
    """
    one, two, three = sums[0], sums[1], sums[2]
    first, second = rest[0], rest[1]
    for pair in range(len(old)):
        more = new[pair] - old[pair]
        one[pair] += more
        two[pair] += more * first[pair]
        three[pair] += more * second[pair]


@compiled_sums
def site_field(rest: Numbers, positions: Numbers, tokens: Numbers, mixed: Numbers, field: Numbers) -> None:
    """Compute the field of a site.

    Args:
        rest: Sums e_(order - 1) (P * Q,) without the site.
        positions: Entries (P,) of the position vectors at the site.
        tokens: Entries (V, Q) of the token vectors.
        mixed: Buffer (Q,).
        field: Output (V,).
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
    """Compute the fields (rows, m, V) at the `sites` (rows, m) of `tokens` (rows, L) for rows `first` to `last`."""
    sums, rest = np.empty((3, contributions.shape[2])), np.empty((3, contributions.shape[2]))
    mixed = np.empty(vectors.shape[1])
    for row in range(first, last):
        elementary_sums(tokens[row], contributions, sums)
        for column in range(sites.shape[1]):
            site = sites[row, column]
            remove_site(sums, contributions[site, tokens[row, site]], rest)
            site_field(rest[order - 2], positions[site], vectors, mixed, fields[row, column])


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
    """Sample every site of rows `first` to `last` of `tokens` (rows, L) in order, `sweeps` times."""
    sums, rest = np.empty((3, contributions.shape[2])), np.empty((3, contributions.shape[2]))
    mixed, field = np.empty(vectors.shape[1]), np.empty(len(vectors))
    for row in range(first, last):
        for _ in range(sweeps):
            # The sums are recomputed in every sweep, so that rounding errors do not accumulate.
            elementary_sums(tokens[row], contributions, sums)
            for site in range(tokens.shape[1]):
                old = contributions[site, tokens[row, site]]
                remove_site(sums, old, rest)
                site_field(rest[order - 2], positions[site], vectors, mixed, field)
                token = invert(next_uniform(keys, counters, row), np.exp(field - field.max()))
                if token != tokens[row, site]:
                    replace_site(sums, old, contributions[site, token], rest)
                    tokens[row, site] = token


class PairSums(CompiledFields):
    """Fields from elementary symmetric sums, for low ranks.

    A field is `factor` times the sum over p, q of j^p_i u^q_a e_(order - 1) of the other sites.

    Args:
        positions: Vectors j (P, L).
        vectors: Vectors u (Q, V).
        order: Order of the energy, from 2 to 4.
        factor: Factor of the fields.
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
        """Return the approximate time of an update, or infinity if the tables would be too large."""
        del order
        pairs = len(positions) * (len(vectors) + _VECTOR - 1)
        fits = positions.shape[1] * vectors.shape[1] * pairs <= ENTRIES
        return 1.3 * pairs if fits else float("inf")
