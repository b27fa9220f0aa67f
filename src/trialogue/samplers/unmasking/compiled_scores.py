"""Compiled scores of positions with large vocabularies, each in one pass over the log-probabilities."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled, run_over_rows
from trialogue.exponentials import BLOCK, exponentials_of_block

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]

_LEAST = np.float32(-100.0)
"""Lower bound of logarithms, whose exponential is 0 in single precision."""


def score_rows(kernel: Callable[..., Any], log_probs: Tensor) -> Tensor:
    """Return the score (...) float32 of each distribution.

    Args:
        kernel: Compiled function, `write_negative_entropies` or `write_margins`.
        log_probs: Log-probabilities (..., vocab) float32 on the CPU.
    """
    rows = log_probs.flatten(0, -2).contiguous().numpy()
    scores = np.empty(len(rows))
    run_over_rows(kernel, len(rows), rows.shape[1], rows, scores)
    return torch.from_numpy(scores).float().view(log_probs.shape[:-1])


@compiled
def write_negative_entropies(first: int, last: int, log_probs: Floats, scores: Scores) -> None:
    """Write minus the entropies of rows `first` to `last` - 1 of `log_probs` (rows, vocab) to `scores` (rows,)."""
    weights, powers, sums = (
        np.empty(BLOCK, np.float32),
        np.empty(BLOCK, np.int32),
        np.empty(BLOCK, np.float32),
    )
    for row in range(first, last):
        numbers = log_probs[row]
        sums[:] = 0
        for block in range((len(numbers) + BLOCK - 1) // BLOCK):
            exponentials_of_block(numbers, 0.0, block, powers, weights)
            part = numbers[block * BLOCK : (block + 1) * BLOCK]
            for index in range(len(part)):
                sums[index] += weights[index] * max(part[index], _LEAST)
        scores[row] = 0.0
        for number in sums:
            scores[row] += number


@compiled
def write_margins(first: int, last: int, log_probs: Floats, scores: Scores) -> None:
    """Write the difference between the two highest probabilities of each row to an array.

    Args:
        first: First row.
        last: Row after the last one.
        log_probs: Log-probabilities (rows, vocab).
        scores: Output (rows,). Entries from `first` to `last` - 1 are overwritten.
    """
    largest, second = np.empty(BLOCK, np.float32), np.empty(BLOCK, np.float32)
    for row in range(first, last):
        numbers = log_probs[row]
        largest[:], second[:] = -np.inf, -np.inf
        for start in range(0, len(numbers), BLOCK):
            part = numbers[start : start + BLOCK]
            for index in range(len(part)):
                number, best = part[index], largest[index]
                lower = number if number < best else best
                largest[index] = number if number > best else best
                second[index] = lower if lower > second[index] else second[index]
        best, other = largest[0], second[0]
        for index in range(1, BLOCK):
            other = max(other, second[index], min(best, largest[index]))
            best = max(best, largest[index])
        scores[row] = np.exp(best) - np.exp(other)
