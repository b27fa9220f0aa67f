"""Checks of what an oracle returns, made at its first call in a run: shape, type and normalisation."""

import math
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError

_TOLERANCE = 1e-3
"""How far the probabilities of a row may sum from one; more in types that round coarsely, see `require_log_probs`."""


def require_features(features: Any, rows: int) -> None:
    """Raise `InputError` unless `features` is a tensor (rows, width): what `Context.features` returns."""
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != rows:
        hint = f"return a tensor with one row for each of the {rows} prefixes"
        raise InputError("oracle", _shown(features), hint)


def require_log_probs(field: str, log_probs: Any, shape: tuple[int, ...]) -> None:
    """Raise `InputError` unless `log_probs` is a floating-point tensor of `shape` whose rows are normalised.

    Rows of NaN and rows without any probability are left to the code that samples from them: whether such a row
    matters depends on what is asked.

    Args:
        field: What the error names.
        log_probs: Log-probabilities (..., vocab).
        shape: The shape they must have, which ends in the size of the vocabulary.
    """
    if not isinstance(log_probs, Tensor) or tuple(log_probs.shape) != shape:
        hint = f"return log-probabilities of shape {shape}: the last axis has one entry for each token"
        raise InputError(field, _shown(log_probs), hint)
    require_floating(field, log_probs)
    totals = log_probs.double().logsumexp(-1)
    tolerance = max(_TOLERANCE, math.sqrt(torch.finfo(log_probs.dtype).eps))
    wrong = totals[totals.abs() > tolerance]
    wrong = wrong[wrong > -math.inf]
    if wrong.numel():
        total = math.exp(min(float(wrong[0]), 700.0))
        hint = "what the probabilities of a row sum to, not 1: return log_softmax(logits, -1)"
        raise InputError(field, float(f"{total:.6g}"), hint)


def require_floating(field: str, log_probs: Tensor) -> None:
    """Raise `InputError` for log-probabilities that are no floating-point numbers."""
    if not log_probs.is_floating_point():
        raise InputError(field, log_probs.dtype, "return log-probabilities in floating point")


def _shown(answer: Any) -> Any:
    """The shape of a tensor or array, and the type of anything else."""
    return tuple(answer.shape) if hasattr(answer, "shape") else type(answer).__name__
