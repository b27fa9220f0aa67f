"""Checks of the shape, type and normalisation of an oracle's output, made at its first call in a run."""

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
    """Raise `InputError` unless `features` is a tensor (rows, width): what `Context.features` returns."""
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != rows:
        hint = f"return a tensor with one row for each of the {rows} prefixes"
        raise InputError("oracle", _shown(features), hint)


def require_log_probs(field: str, log_probs: Any, shape: tuple[int, ...]) -> None:
    """Raise `InputError` unless `log_probs` is a floating-point tensor of `shape` whose rows are normalised.

    The normalisation of the first 64 rows is checked, on the CPU. Rows of NaN and rows without any probability pass.
    These rows are checked when they are sampled.

    Args:
        field: Name that an error reports.
        log_probs: Log-probabilities (..., vocab) that the oracle returned.
        shape: Required shape, whose last entry is the size of the vocabulary.
    """
    if not isinstance(log_probs, Tensor) or tuple(log_probs.shape) != shape:
        hint = f"return log-probabilities of shape {shape}: the last axis has one entry for each token"
        raise InputError(field, _shown(log_probs), hint)
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
    """Raise `InputError` unless `log_probs` has a floating-point type."""
    if not log_probs.is_floating_point():
        raise InputError(field, log_probs.dtype, "return log-probabilities in floating point")


def _shown(output: Any) -> Any:
    """Return the shape of a tensor or array, and the type name of anything else."""
    return tuple(output.shape) if hasattr(output, "shape") else type(output).__name__
