"""Compiled top-p truncation, without sorting the whole vocabulary."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled, run_over_rows
from trialogue.errors import InputError
from trialogue.indices import require_floats
from trialogue.validation import Count, PositiveShare, check

Floats = NDArray[np.float32]
Bits = NDArray[np.int32]

_HIGH, _MIDDLE, _LOW = 12, 10, 10  # Bits of a float32, from the most significant to the least.


def nucleus(log_probs: Tensor, top_p: float) -> Tensor:
    """Top-p truncation: keep the most probable tokens of each row up to a total probability, and normalise.

    The tokens kept are the smallest set of most probable tokens whose total probability is at least `top_p`.
    Among equally probable tokens, lower indices come first.

    Args:
        log_probs: Log-probabilities (n, vocab) float32 on the CPU.
        top_p: A probability above 0.

    Returns:
        Log-probabilities (n, vocab) float32, -inf for removed tokens.

    Raises:
        InputError: For other dtypes and devices, and if a row is not a distribution.
    """
    hint = "give log-probabilities (n, vocab) in float32 on the CPU"
    require_floats("log_probs", log_probs, (None, None), hint)
    if log_probs.dtype != torch.float32 or log_probs.device.type != "cpu" or not log_probs.shape[1]:
        raise InputError("log_probs", (*log_probs.shape, str(log_probs.dtype), str(log_probs.device)), hint)
    top_p = check("top_p", top_p, PositiveShare)
    largest = log_probs.amax(-1, keepdim=True)
    if not bool(largest.isfinite().all()):
        raise _no_distribution(largest[~largest.isfinite()][0].item())
    relative = log_probs - largest
    probs, result = relative.exp().contiguous().numpy(), torch.empty_like(relative)
    # For non-negative floats, the order of the bit patterns is the order of the values.
    run_over_rows(_cut, *probs.shape, probs, probs.view(np.int32), relative.numpy(), result.numpy(), top_p)
    return result


@compiled
def _cut(
    first: int, last: int, probs: Floats, bits: Bits, relative: Floats, result: Floats, top_p: float
) -> None:
    vocab = probs.shape[1]
    mass = np.empty(1 << max(_HIGH, _MIDDLE, _LOW), dtype=np.float64)
    candidates = np.empty(vocab, dtype=np.int64)
    narrower = np.empty(vocab, dtype=np.int64)
    for row in range(first, last):
        p, b = probs[row], bits[row]
        total = 0.0
        mass[: 1 << _HIGH] = 0.0
        for token in range(vocab):
            total += p[token]
            mass[b[token] >> (_MIDDLE + _LOW)] += p[token]
        before, reach = 0.0, top_p * total
        bucket = (1 << _HIGH) - 1
        while bucket > 0 and before + mass[bucket] < reach:
            before += mass[bucket]
            bucket -= 1
        prefix, count = bucket, 0
        for token in range(vocab):
            if b[token] >> (_MIDDLE + _LOW) == prefix:
                candidates[count] = token
                count += 1
        for width, below in ((_MIDDLE, _LOW), (_LOW, 0)):
            mass[: 1 << width] = 0.0
            for place in range(count):
                token = candidates[place]
                mass[(b[token] >> below) & ((1 << width) - 1)] += p[token]
            bucket = (1 << width) - 1
            while bucket > 0 and before + mass[bucket] < reach:
                before += mass[bucket]
                bucket -= 1
            prefix = (prefix << width) | bucket
            kept = 0
            for place in range(count):
                if b[candidates[place]] >> below == prefix:
                    narrower[kept] = candidates[place]
                    kept += 1
            candidates, narrower, count = narrower, candidates, kept
        # The remaining candidates have equal probability. They are added by index until the set reaches `top_p`.
        taken = 0
        while taken < count and before < reach:
            before += p[candidates[taken]]
            taken += 1
        end = candidates[taken - 1] if taken else -1
        shift = np.float32(np.log(before))
        for token in range(vocab):
            inside = b[token] > prefix or (b[token] == prefix and token <= end)
            result[row, token] = relative[row, token] - shift if inside else -np.inf


def leading(log_probs: Tensor, top_k: int | None, top_p: float) -> Tensor:
    """Apply top-k and then top-p, and normalise. Made for vocabularies of about ten tokens.

    Args:
        log_probs: Log-weights (n, vocab) float32 or float64 on the CPU, not necessarily normalised.
        top_k: Keep this many most probable tokens. None for all.
        top_p: Keep the smallest set of most probable tokens whose total probability is at least `top_p`.

    Returns:
        Log-probabilities (n, vocab) of the dtype of `log_probs`, -inf for removed tokens.

    Raises:
        InputError: For other dtypes and devices, and if a row is not a distribution.
    """
    hint = "give log-probabilities (n, vocab) in float32 or float64 on the CPU"
    require_floats("log_probs", log_probs, (None, None), hint)
    vocab = log_probs.shape[1]
    if log_probs.device.type != "cpu" or not vocab:
        raise InputError("log_probs", (*log_probs.shape, str(log_probs.device)), hint)
    # Validation takes longer than the loop over a row, so valid arguments skip it.
    if not (type(top_p) is float and 0 < top_p <= 1):
        top_p = check("top_p", top_p, PositiveShare)
    if top_k is not None and not (type(top_k) is int and top_k >= 1):
        top_k = check("top_k", top_k, Count)
    most = vocab if top_k is None else min(top_k, vocab)
    result = torch.empty_like(log_probs)
    wrong = _lead(log_probs.numpy(), most, top_p, result.numpy())
    if wrong >= 0:
        raise _no_distribution(log_probs[wrong].amax().item())
    return result


def _no_distribution(largest: float) -> InputError:
    """Return the error for a row whose largest log-probability is `largest`."""
    return InputError("log_probs", largest, "the largest log-probability of every row must be finite")


@compiled
def _lead(
    log_probs: NDArray[np.floating[Any]], most: int, top_p: float, result: NDArray[np.floating[Any]]
) -> int:
    """Write the truncated rows to `result`. Return the first row that is not a distribution, or -1."""
    vocab, number = log_probs.shape[1], result.dtype.type
    order, probs = np.empty(vocab, dtype=np.int64), np.empty(vocab, dtype=result.dtype)
    for row in range(len(log_probs)):
        distribution = log_probs[row]
        largest = distribution[0]
        for token in range(vocab):
            # Only NaN is not at most infinite.
            if not distribution[token] <= np.inf:
                return row
            largest = max(largest, distribution[token])
        if not -np.inf < largest < np.inf:
            return row
        for token in range(vocab):
            place = token
            while place and distribution[order[place - 1]] < distribution[token]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = token
        total, reached, mass, kept = number(0), number(0), number(0), 0
        for place in range(most):
            probs[place] = np.exp(distribution[order[place]] - distribution[order[0]])
            total += probs[place]
        while kept < most:
            share = probs[kept] / total
            reached += share
            if kept and top_p != 1 and reached - share >= number(top_p):
                break
            mass += probs[kept]
            kept += 1
        shift = distribution[order[0]] + np.log(mass)
        for place in range(vocab):
            result[row, order[place]] = distribution[order[place]] - shift if place < kept else -np.inf
    return -1
