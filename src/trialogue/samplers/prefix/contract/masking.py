"""Token masks of next-token distributions, in a single compiled pass."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled
from trialogue.exponentials import BLOCK, largest, sums_of_exponentials

Floats = NDArray[np.float32]


def mask_with_mass(log_probs: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Set the log-probabilities of excluded tokens to -inf, and compute the total probability of the others.

    Args:
        log_probs: Log-probabilities (n, vocab) float32 or float64.
        allowed: Whether each token is kept, (n, vocab) bool.

    Returns:
        A new tensor (n, vocab), whose rows are not normalised, and the logarithm (n,) float64 of the total probability
        of each row. The logarithm is -inf if every token of a row has probability zero.
    """
    if log_probs.dtype != torch.float32 or log_probs.device.type != "cpu":
        masked = log_probs.masked_fill(~allowed, -torch.inf)
        return masked, masked.double().logsumexp(1)
    given = log_probs.numpy()
    kept, mass = np.empty(given.shape, np.float32), np.empty(len(given))
    _mask(given, allowed.numpy(), kept, mass)
    return torch.from_numpy(kept), torch.from_numpy(mass)


@compiled
def _mask(log_probs: Floats, allowed: NDArray[np.bool_], masked: Floats, mass: NDArray[np.float64]) -> None:
    vocab = log_probs.shape[1]
    sums = np.empty((vocab + BLOCK - 1) // BLOCK)
    for row in range(len(log_probs)):
        for token in range(vocab):
            masked[row, token] = log_probs[row, token] if allowed[row, token] else np.float32(-np.inf)
        maximum = largest(masked[row])
        mass[row] = maximum
        if maximum > -np.inf:
            mass[row] += np.log(sums_of_exponentials(masked[row], maximum, sums))
