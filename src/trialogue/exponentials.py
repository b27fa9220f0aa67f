"""Compiled exponentials and sums of float32 numbers, in blocks that fit into the processor's cache.

The results do not depend on the width of the processor's vectors.
"""

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import compiled

Floats = NDArray[np.float32]

BLOCK = 256
"""Number of exponentials that are computed at once."""


@compiled
def exponentiate(numbers: Floats, powers: NDArray[np.int32]) -> None:
    """Replace `numbers` (k,), none of them positive, by their exponentials. Vectorised, unlike `math.exp`.

    Numbers below -87, whose exponentials would be denormal, give 0. `powers` (k,) is overwritten. The polynomial is
    that of `expf` in the Cephes library.
    """
    factors = powers.view(np.float32)
    for index in range(len(numbers)):
        number = max(numbers[index], np.float32(-88.0))
        power = np.floor(number * np.float32(1.44269504) + np.float32(0.5))
        rest = number - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
        series = np.float32(1.9875691500e-4)
        series = series * rest + np.float32(1.3981999507e-3)
        series = series * rest + np.float32(8.3334519073e-3)
        series = series * rest + np.float32(4.1665795894e-2)
        series = series * rest + np.float32(1.6666665459e-1)
        series = series * rest + np.float32(5.0000001201e-1)
        numbers[index] = series * rest * rest + rest + np.float32(1)
        exponent = (np.int32(power) + np.int32(127)) << np.int32(23)
        powers[index] = exponent if number >= np.float32(-87.0) else np.int32(0)
    for index in range(len(numbers)):
        numbers[index] *= factors[index]


@compiled
def largest(numbers: Floats) -> float:
    """Return the largest of `numbers` (k,), ignoring NaN. The result is -inf if there is none."""
    lanes = np.full(BLOCK, -np.inf, np.float32)
    for first in range(0, len(numbers), BLOCK):
        part = numbers[first : first + BLOCK]
        for index in range(len(part)):
            lanes[index] = part[index] if part[index] > lanes[index] else lanes[index]
    found = lanes[0]
    for number in lanes:
        found = max(found, number)
    return found


@compiled
def exponentials_of_block(
    numbers: Floats, subtracted: float, block: int, powers: NDArray[np.int32], out: Floats
) -> None:
    """Write the exponentials of one block of `numbers` (k,) minus `subtracted` to `out` (BLOCK,), padded with zeros."""
    part = numbers[block * BLOCK : (block + 1) * BLOCK]
    for index in range(len(part)):
        out[index] = part[index] - np.float32(subtracted)
    for index in range(len(part), BLOCK):
        out[index] = -np.inf
    exponentiate(out, powers)


@compiled
def _all_below(numbers: Floats, least: np.float32) -> bool:
    """Return whether all `numbers` (k,) are below `least`, with k at least 1. NaN is not."""
    if not numbers[0] < least:
        return False
    count = np.int32(0)
    for index in range(len(numbers)):
        count += np.int32(numbers[index] < least)
    return bool(count == len(numbers))


@compiled
def sums_of_exponentials(numbers: Floats, subtracted: float, sums: NDArray[np.float64]) -> float:
    """Sum the exponentials of `numbers` (k,) minus their maximum.

    Args:
        numbers: Numbers (k,).
        subtracted: Their maximum.
        sums: Output: sum of each block of 256 numbers.

    Returns:
        The total. NaN if a number is NaN or all are -inf.
    """
    out, powers, total = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.int32), 0.0
    least = np.float32(subtracted) - np.float32(88)
    for block in range(len(sums)):
        if _all_below(numbers[block * BLOCK : (block + 1) * BLOCK], least):
            sums[block] = 0.0
            continue
        exponentials_of_block(numbers, subtracted, block, powers, out)
        half = BLOCK // 2
        while half:
            for index in range(half):
                out[index] += out[index + half]
            half //= 2
        sums[block] = out[0]
        total += sums[block]
    return total
