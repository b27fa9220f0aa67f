"""Validation of the shape, dtype and normalisation of a model's output, at its first call in a run."""

import math
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError

_TOLERANCE = 1e-3
"""Largest accepted difference of the sum of a row from one, in log space; types of low precision may exceed it."""
_CHECKED_ROWS = 64
"""Number of rows whose normalisation is checked. Float64 copies of all rows of a large batch may need gigabytes."""


def require_features(features: Any, rows: int) -> None:
    """Raise `InputError` unless the features that a model returned have the right shape.

    Args:
        features: Return value of `Context.features`.
        rows: Number of prefixes.

    Raises:
        InputError: If `features` is not a tensor with two axes and `rows` rows.
    """
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != rows:
        hint = f"return a tensor with one row for each of the {rows} prefixes"
        raise InputError("oracle", _describe_output(features), hint)


def require_log_probs(field: str, log_probs: Any, shape: tuple[int, ...]) -> None:
    """Raise `InputError` unless log-probabilities have the right shape and dtype, and are normalised.

    The normalisation of the first 64 rows is checked, on the CPU. Rows of NaN, and rows in which every probability is
    0, are not reported. These rows are checked when they are sampled.

    Args:
        field: Name of the checked object in error messages.
        log_probs: Log-probabilities (..., vocab) that the oracle returned.
        shape: Required shape, whose last entry is the size of the vocabulary.

    Raises:
        InputError: If the shape or the type is wrong, or the probabilities of a row do not sum to 1.
    """
    if not isinstance(log_probs, Tensor) or tuple(log_probs.shape) != shape:
        hint = f"return log-probabilities of shape {shape}: the last axis has one entry for each token"
        raise InputError(field, _describe_output(log_probs), hint)
    require_floating(field, log_probs)
    totals = log_probs.flatten(end_dim=-2)[:_CHECKED_ROWS].cpu().double().logsumexp(-1)
    tolerance = max(_TOLERANCE, math.sqrt(torch.finfo(log_probs.dtype).eps))
    wrong = totals[totals.abs() > tolerance]
    wrong = wrong[wrong > -math.inf]
    if wrong.numel():
        total = math.exp(min(float(wrong[0]), 700.0))
        hint = "the probabilities of a row must sum to 1. Return log_softmax(logits, -1)."
        raise InputError(field, float(f"{total:.6g}"), hint)


def require_floating(field: str, log_probs: Tensor) -> None:
    """Raise `InputError` unless log-probabilities have a floating-point dtype.

    Args:
        field: Name of the checked object in error messages.
        log_probs: Log-probabilities of any shape.

    Raises:
        InputError: If the type is not a floating-point type.
    """
    if not log_probs.is_floating_point():
        raise InputError(field, log_probs.dtype, "return log-probabilities in floating point")


def _describe_output(output: Any) -> Any:
    """Return the shape of a tensor or array, or the type name of anything else, for error messages."""
    return tuple(output.shape) if hasattr(output, "shape") else type(output).__name__
