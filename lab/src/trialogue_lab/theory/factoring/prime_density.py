"""Accuracy of a deterministic generator of random primes that uses the density of primes.

The next digit of an n-digit prime is distributed as the shares of primes in the remaining ten intervals. For
long intervals, the generator uses the integral of 1 / ln x (printed as "log-1 x" in the source). If at most
`counted` digits remain, it tests every number for primality. The integral is accurate only if an interval
contains many primes.

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
    """Return the logarithmic integral li(x) (n,) float64; arguments below 2 give li(2)."""
    return torch.from_numpy(np.asarray(expi(np.log(np.maximum(np.asarray(numbers), 2.0)))))


@validated
def density_variation(digits: Count, counted: Natural = 0) -> Tensor:
    """Return the total variation of the first k digits from those of a random prime, for k = 1 to `digits`.

    The computation is exact over all prefixes.

    Args:
        digits: Number of digits.
        counted: Number of last digits for which primes are counted.

    Returns:
        Total variation (digits,) float64.

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
        # Of each prefix the ten intervals that follow it, but nine of the empty one.
        shares = np.diff(density_integral(edges).numpy()).reshape(len(distribution), -1)
        counts = np.diff(np.searchsorted(primes, edges)).reshape(len(distribution), -1)
        if digits - length < counted:
            shares = np.where(counts.sum(1, keepdims=True) > 0, counts, shares)
        distribution = (distribution[:, None] * shares / shares.sum(1, keepdims=True)).ravel()
        distances.append(np.abs(distribution - counts.ravel() / len(primes)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)


def uniform_variation(digits: int) -> Tensor:
    """Return the baseline (digits,): the total variation of a uniformly random number from a random prime."""
    primes = primes_of(digits)
    distances = []
    for length in range(1, digits + 1):
        edges = np.arange(10 ** (length - 1), 10**length + 1) * 10 ** (digits - length)
        shares = np.diff(np.searchsorted(primes, edges)) / len(primes)
        distances.append(np.abs(shares - 1 / len(shares)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)
