"""Validation of memorization targets: distributions, contexts and context probabilities."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trialogue.arrays import integer_tensor, real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import SINGLE, validate_distribution


def check_log_probs(log_probs: Tensor, zeros: bool = False) -> Tensor:
    """Return log-probabilities (T, N) as normalized float64 after checking them.

    Args:
        log_probs: Log-probabilities of N tokens after each of T contexts.
        zeros: Whether tokens of probability zero are allowed.

    Raises:
        InputError: If the shape is wrong, rows are not normalized, or a token has a forbidden probability of
            zero.
    """
    hint = "give log-probabilities (T, N) of N tokens, at least 2, after each of T contexts"
    distributions = real_tensor("targets", log_probs, hint)
    if distributions.ndim != 2 or not len(distributions) or distributions.shape[1] < 2:
        raise InputError("targets", tuple(distributions.shape), hint)
    sums = distributions.logsumexp(1)
    wrong = ~(sums.abs() <= SINGLE)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0, 0])
        hint = f"row {row} has this log of the sum of probabilities: normalize it with `log_softmax`"
        raise InputError("targets", float(sums[row]), hint)
    if not zeros and not bool(torch.isfinite(distributions).all()):
        row = int((~torch.isfinite(distributions)).nonzero()[0, 0])
        hint = f"row {row} has a token of probability zero: use `softened(targets, floor)`, because logits are finite"
        raise InputError("targets", -math.inf, hint)
    return distributions - sums[:, None]


def check_prior(prior: Tensor | None, contexts: int) -> Tensor:
    """Return the probabilities (T,) of the contexts, uniform by default, after checking them.

    Args:
        prior: Probabilities (T,), or None.
        contexts: Number T of contexts.
    """
    if prior is None:
        return torch.full((contexts,), 1 / contexts, dtype=torch.float64)
    return validate_distribution("prior", prior, (contexts,))


def check_contexts(contexts: Tensor, targets: int, vocab_size: int) -> Tensor:
    """Return contexts (T, S) int64 after checking them.

    Args:
        contexts: Token ids (T, S).
        targets: Number T of targets.
        vocab_size: Number of tokens.

    Raises:
        InputError: If the number of contexts differs from `targets`, a token is invalid, or a context occurs
            twice.
    """
    hint = "give token ids (T, S), a row of S tokens for each target"
    tokens = integer_tensor("contexts", contexts, hint)
    if tokens.ndim != 2 or not tokens.numel() or len(tokens) != targets:
        raise InputError("contexts", tuple(tokens.shape), f"{hint}: there are {targets} targets")
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)]
    if len(wrong):
        raise InputError("contexts", int(wrong[0]), f"use tokens from 0 to {vocab_size - 1}")
    different, counts = tokens.unique(dim=0, return_counts=True)
    if len(different) < len(tokens):
        twice = tuple(different[counts > 1][0].tolist())
        raise InputError("contexts", twice, "this context occurs twice: give each context one target")
    return tokens


def compute_divergence(distributions: Tensor, log_probs: Tensor, weights: Tensor) -> float:
    """Return the mean KL divergence between two distributions in nats.

    Tokens of probability zero in the first distribution contribute nothing. Negative rounding errors are
    clamped to zero.

    Args:
        distributions: Log-probabilities (T, N) of the first distribution after each context.
        log_probs: Log-probabilities (T, N) of the second distribution.
        weights: Probability of each context (T,).
    """
    terms = torch.where(torch.isfinite(distributions), distributions.exp() * (distributions - log_probs), 0.0)
    return max(0.0, float(weights @ terms.sum(1)))
