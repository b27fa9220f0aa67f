"""Accuracy of a generator of random primes that estimates numbers of primes by an integral.

The generator writes digits from left to right. It chooses each digit in proportion to the number of primes
that start with the digits so far. For long primes, it estimates this number by the integral of 1 / ln x. If
at most `counted` digits remain, it counts the primes.

Source: "Theoretical Limitations of Autoregressive Models", appendix, "Generating primes deterministically".
"""

from typing import Annotated

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.special import expi
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, validated
from trialogue_lab.data.puzzles.random_primes import primes_of


@validated
def density_integral(numbers: Annotated[ArrayLike, Reals("n")]) -> Tensor:
    """Return the logarithmic integral li(x), the approximate number of primes up to x.

    Args:
        numbers: Numbers x, shape (n,). Values below 2 give li(2).

    Returns:
        Tensor (n,) float64.
    """
    return torch.from_numpy(np.asarray(expi(np.log(np.maximum(np.asarray(numbers), 2.0)))))


@validated
def density_variation(digits: Count, counted: Natural = 0) -> Tensor:
    """Compute the error of a generator that writes random primes digit by digit with approximate probabilities.

    The generator chooses each digit in proportion to the number of primes that start with the digits so far. This
    number is approximated by the integral of 1 / ln x. The error is the total variation distance from a uniformly
    random prime, computed exactly.

    Args:
        digits: Number of digits of a prime.
        counted: Number of last digits for which the generator uses exact numbers of primes (default: 0).

    Returns:
        Total variation distances (digits,) float64. Entry k - 1 compares the distributions of the first k digits.

    Raises:
        InputError: If the primes are too many to list or `counted` exceeds `digits`.
    """
    primes = primes_of(digits)
    if counted > digits:
        raise InputError("counted", counted, f"must be at most digits={digits}")
    distribution, distances = np.ones(1), []
    for length in range(1, digits + 1):
        block = 10 ** (digits - length)
        edges = np.arange(10 ** (length - 1), 10**length + 1) * block
        # Each prefix is followed by ten intervals, but the empty prefix by nine.
        shares = np.diff(density_integral(edges).numpy()).reshape(len(distribution), -1)
        counts = np.diff(np.searchsorted(primes, edges)).reshape(len(distribution), -1)
        if digits - length < counted:
            shares = np.where(counts.sum(1, keepdims=True) > 0, counts, shares)
        distribution = (distribution[:, None] * shares / shares.sum(1, keepdims=True)).ravel()
        distances.append(np.abs(distribution - counts.ravel() / len(primes)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)


def uniform_variation(digits: int) -> Tensor:
    """Compute the total variation distance between the digits of a random number and of a random prime.

    It is a baseline for `density_variation`, the distance of an approximate generator of primes.

    Args:
        digits: Number of digits.

    Returns:
        Total variation distances (digits,) float64. Entry k - 1 compares the distributions of the first k digits.
    """
    primes = primes_of(digits)
    distances = []
    for length in range(1, digits + 1):
        edges = np.arange(10 ** (length - 1), 10**length + 1) * 10 ** (digits - length)
        shares = np.diff(np.searchsorted(primes, edges)) / len(primes)
        distances.append(np.abs(shares - 1 / len(shares)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)
