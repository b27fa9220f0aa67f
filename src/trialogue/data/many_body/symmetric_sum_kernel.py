"""Gibbs sampling of a many-body distribution with elementary symmetric sums. Updating a site costs P Q operations.

The energy is built from P vectors with one entry per site and Q vectors with one entry per token. For each
pair of vectors, a site contributes the number B_i, the product of both entries. The elementary symmetric sum
e_m is the sum, over all sets of m sites, of the product of their B_i. The sums without one site follow from
those over all sites: e_m without site i = e_m - B_i (e_(m-1) without site i).
"""

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled, compiled_sums
from trialogue.data.many_body.many_body_kernel import ENTRIES, ManyBodyKernel, Numbers, Tokens
from trialogue.randomness import invert, next_uniform

_VECTOR = 8


@compiled_sums
def elementary_sums(tokens: Tokens, contributions: Numbers, sums: Numbers) -> None:
    """Compute the elementary symmetric sums of the contributions of all sites of one sequence.

    The sum e_m is the sum, over all sets of m sites, of the product of their contributions. It is computed for m from 1
    to 3, and separately for each pair of a position vector and a token vector.

    Args:
        tokens: Tokens (L,).
        contributions: Contribution (L, V, pairs) of each site and token.
        sums: Output (3, pairs). Row m - 1 is e_m.
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
    """Compute the elementary symmetric sums of a sequence without one site.

    The sum e_m is the sum, over all sets of m sites, of the product of their contributions.

    Args:
        sums: Sums (3, pairs) over all sites. Row m - 1 is e_m.
        old: Contribution (pairs,) of the site.
        rest: Output (3, pairs), the sums over all other sites.
    """
    one, two, three = sums[0], sums[1], sums[2]
    first, second, third = rest[0], rest[1], rest[2]
    for pair in range(len(old)):
        below = one[pair] - old[pair]
        above = two[pair] - old[pair] * below
        first[pair], second[pair], third[pair] = below, above, three[pair] - old[pair] * above


@compiled_sums
def replace_site(sums: Numbers, old: Numbers, new: Numbers, rest: Numbers) -> None:
    """Update the elementary symmetric sums in place after the token of one site changes.

    Args:
        sums: Sums (3, pairs) over all sites, modified in place. Row m - 1 is e_m.
        old: Contribution (pairs,) of the site before the change.
        new: Contribution (pairs,) of the site after the change.
        rest: Sums (3, pairs) over all other sites.
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
    """Compute the field of a site: its contribution to -E for each of its values, where E is the energy.

    Args:
        rest: Elementary symmetric sums e_(order - 1) (P * Q,) over all other sites, one per pair of vectors.
        positions: Entries (P,) of the position vectors at the site, multiplied by the factor of the fields.
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
    """Compute the unnormalized conditional log-probabilities ("fields") of sites, for rows `first` to `last` - 1.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Sequences (rows, L).
        sites: Indices (rows, m) of the sites of each row.
        contributions: Contribution (L, V, pairs) of each site and token.
        positions: Entries (L, P) of the position vectors, multiplied by the factor of the fields.
        vectors: Entries (V, Q) of the token vectors.
        order: Number of interacting sites.
        fields: Output (rows, m, V).
    """
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
    """Sample every site from its conditional distribution, in place, for rows `first` to `last` - 1.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Sequences (rows, L), modified in place.
        keys: Keys (rows,) of the random streams.
        counters: Counters (rows,) of the random streams, advanced in place.
        contributions: Contribution (L, V, pairs) of each site and token.
        positions: Entries (L, P) of the position vectors, multiplied by the factor of the fields.
        vectors: Entries (V, Q) of the token vectors.
        order: Number of interacting sites.
        sweeps: Number of passes over all sites.
    """
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


class SymmetricSumKernel(ManyBodyKernel):
    """Compiled Gibbs sampler of a many-body distribution, which uses elementary symmetric sums. Faster for low ranks.

    See the module for the method.

    Args:
        positions: Position vectors (P, L), one entry per site.
        vectors: Token vectors (Q, V), one entry per token.
        order: Number of interacting sites, from 2 to 4.
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
        """Estimate the time to update one site in nanoseconds, or infinity if the tables would be too large.

        Args:
            positions: Vectors j^p (P, L), one entry per site.
            vectors: Vectors u^q (Q, V), one entry per token.
            order: Number of sites that the energy couples. Not used.
        """
        del order
        pairs = len(positions) * (len(vectors) + _VECTOR - 1)
        fits = positions.shape[1] * vectors.shape[1] * pairs <= ENTRIES
        return 1.3 * pairs if fits else float("inf")
