"""Products of the independent distributions of the positions of sequences, written as numbers of digits."""

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def total_mass(options: Floats, offsets: Integers, masses: Floats, size: int) -> Floats:
    """Return the total mass of each sequence of digits.

    Args:
        options: Probabilities (rows, length, digits) of the digits of each position. The first digit is the lowest.
        offsets: Number (rows,) that is added to the sequences of each row.
        masses: Mass (rows,) of each row.
        size: Upper bound of the sum of an offset and a sequence.

    Returns:
        Masses (size,) of the sequences plus offsets.
    """
    total = np.zeros(size)
    _add_masses(options, offsets, masses, total)
    return total


def list_sequences(options: Floats) -> tuple[Integers, Integers, Floats]:
    """List the possible sequences of digits of each row.

    Args:
        options: Probabilities (rows, length, digits) of the digits of each position. The first digit is the lowest.

    Returns:
        Row (n,), number (n,) and probability (n,) of each possible sequence.
    """
    counts = (options > 0).sum(2).prod(1)
    codes, factors = np.empty(counts.sum(), np.int64), np.empty(counts.sum())
    _write(options, codes, factors)
    return np.repeat(np.arange(len(options)), counts), codes, factors


@compiled
def _add_masses(options: Floats, offsets: Integers, masses: Floats, total: Floats) -> None:
    _, length, digits = options.shape
    half = length // 2
    for row in range(len(options)):
        low_codes, low = _sequences(options[row, :half])
        high_codes, high = _sequences(options[row, half:])
        for index in range(len(high)):
            mass = masses[row] * high[index]
            base = offsets[row] + high_codes[index] * digits**half
            for other in range(len(low)):
                total[base + low_codes[other]] += mass * low[other]


@compiled
def _write(options: Floats, codes: Integers, factors: Floats) -> None:
    first = 0
    for row in range(len(options)):
        some, products = _sequences(options[row])
        codes[first : first + len(some)], factors[first : first + len(some)] = some, products
        first += len(some)


@compiled
def _sequences(options: Floats) -> tuple[Integers, Floats]:
    """Return the possible sequences of digits with distributions (length, digits), and their probabilities."""
    length, digits = options.shape
    codes, factors = np.zeros(1, np.int64), np.ones(1)
    for site in range(length - 1, -1, -1):
        longer, products = np.empty(len(codes) * digits, np.int64), np.empty(len(codes) * digits)
        kept = 0
        for index in range(len(codes)):
            for digit in range(digits):
                if options[site, digit] > 0:
                    longer[kept] = codes[index] * digits + digit
                    products[kept] = factors[index] * options[site, digit]
                    kept += 1
        codes, factors = longer[:kept], products[:kept]
    return codes, factors
