"""Random primes by a deterministic algorithm: integrals of the density of primes, then counting the last digits.

The next digit of an n-digit prime has ten probabilities, the shares of primes in the ten intervals that are left.
While an interval is long its share is that of the integral of 1 / ln x (the source's "log-1 x"), the logarithmic
integral; when at most `counted` digits are left they are counted by testing every number. The integral says nothing
about single numbers, so that the last digits have to be counted, and it is of use only where an interval holds many
primes.

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
    """The logarithmic integral li(x) (n,) float64 of `numbers`, and li(2) below 2, where there are no primes."""
    return torch.from_numpy(np.asarray(expi(np.log(np.maximum(np.asarray(numbers), 2.0)))))


@validated
def density_variation(digits: Count, counted: Natural = 0) -> Tensor:
    """TV (digits,) float64 between the laws of the first 1, ..., n digits of `PrimesByDensity` and of a random prime.

    Exact, over all prefixes; the last digits are counted in the list of primes. Raises `InputError` where the primes
    are too many to list, or `counted` is out of range.
    """
    primes = primes_of(digits)
    if counted > digits:
        raise InputError("counted", counted, f"must be at most digits={digits}")
    law, distances = np.ones(1), []
    for length in range(1, digits + 1):
        block = 10 ** (digits - length)
        edges = np.arange(10 ** (length - 1), 10**length + 1) * block
        # Of each prefix the ten intervals that follow it, but nine of the empty one.
        shares = np.diff(density_integral(edges).numpy()).reshape(len(law), -1)
        counts = np.diff(np.searchsorted(primes, edges)).reshape(len(law), -1)
        if digits - length < counted:
            shares = np.where(counts.sum(1, keepdims=True) > 0, counts, shares)
        law = (law[:, None] * shares / shares.sum(1, keepdims=True)).ravel()
        distances.append(np.abs(law - counts.ravel() / len(primes)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)


def uniform_variation(digits: int) -> Tensor:
    """TV (digits,) between the laws of the first k digits of a random number and of a random prime: the baseline."""
    primes = primes_of(digits)
    distances = []
    for length in range(1, digits + 1):
        edges = np.arange(10 ** (length - 1), 10**length + 1) * 10 ** (digits - length)
        shares = np.diff(np.searchsorted(primes, edges)) / len(primes)
        distances.append(np.abs(shares - 1 / len(shares)).sum() / 2)
    return torch.tensor(distances, dtype=torch.float64)
