"""Products of the independent distributions of the positions of sequences, written as numbers of digits."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

_OUTCOMES_AT_ONCE = 1 << 20
_DENSE = 64
"""Factor by which an entry of a matrix product costs less than an outcome of `multiply_digits`."""


def total_mass(options: Any, offsets: Any, masses: Any, canvases: int) -> Any:
    """Return the total mass of each sequence of digits after a pass.

    Args:
        options: Probabilities (rows, length, digits) float64 of the digits of each position.
        offsets: Numbers (rows, 1) that are added to the sequences of each row.
        masses: Mass (rows,) of each row.
        canvases: Number of sequences.
    """
    total = np.zeros(int(offsets.max()) + canvases)
    outcomes = (options > 0).sum(2).prod(1).sum()
    if outcomes * _DENSE > len(options) * canvases:
        half = options.shape[1] // 2
        for offset in np.unique(offsets):
            chosen = offsets[:, 0] == offset
            low, high = _outer(options[chosen, :half]), _outer(options[chosen, half:])
            total[offset : offset + canvases] += ((high * masses[chosen, None]).T @ low).ravel()
        return total
    codes, shares, waiting = list[Any](), list[Any](), 0
    for rows, factors, sequences in multiply_digits(options):
        sequences += offsets[rows]
        factors *= masses[rows, None]
        codes.append(sequences.ravel())
        shares.append(factors.ravel())
        waiting += sequences.size
        if waiting >= len(total):
            total += np.bincount(np.concatenate(codes), np.concatenate(shares), len(total))
            codes, shares, waiting = [], [], 0
    if waiting:
        total += np.bincount(np.concatenate(codes), np.concatenate(shares), len(total))
    return total


def _outer(options: Any) -> Any:
    """Return the probabilities (rows, digits^length) of all sequences of digits, of which the first is the lowest."""
    product = np.ones((len(options), 1))
    for site in range(options.shape[1]):
        product = (options[:, site, :, None] * product[:, None]).reshape(len(options), -1)
    return product


def multiply_digits(options: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Multiply the distributions of the positions of each row.

    Args:
        options: Probabilities (rows, length, digits) float64 of the digits of each position.

    Yields:
        Row numbers (n,), the probabilities (n, k) of the sequences of digits that are possible, and these sequences as
        numbers (n, k), whose first digit is the lowest one.
    """
    radix = options.shape[2] ** np.arange(options.shape[1])
    # Possible digits come first at each position, and positions with few possible digits come first in each row.
    possible = options > 0
    digits, ranks = np.zeros(options.shape, np.int64), possible.cumsum(2)
    row, site, digit = possible.nonzero()
    digits[row, site, ranks[possible] - 1] = digit
    counts = ranks[:, :, -1]
    sites = np.argsort(counts.astype(np.int16), axis=1, kind="stable")
    ordered = np.take_along_axis(counts, sites, 1)
    # Rows with equal numbers of possible digits are multiplied together.
    _, first, group = np.unique(
        ordered @ (options.shape[2] + 1) ** np.arange(options.shape[1]),
        return_index=True,
        return_inverse=True,
    )
    for index, shape in enumerate(ordered[first].tolist()):
        members = np.flatnonzero(group == index)
        for rows in np.array_split(members, math.ceil(len(members) * math.prod(shape) / _OUTCOMES_AT_ONCE)):
            factors, codes = np.ones((len(rows), 1)), np.zeros((len(rows), 1), np.int64)
            for place, count in enumerate(shape):
                site = sites[rows, place]
                chosen = digits[rows, site, :count]
                share = options[rows[:, None], site[:, None], chosen]
                factors = (factors[:, :, None] * share[:, None]).reshape(len(rows), -1)
                codes = (codes[:, :, None] + (chosen * radix[site, None])[:, None]).reshape(len(rows), -1)
            yield rows, factors, codes
