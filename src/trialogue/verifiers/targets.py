"""Target distributions other than the model's own: powers of probabilities, and rewards."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Self

import torch
from torch import Tensor

from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Target, Verifier
from trialogue.validation import Finite, Positive, validated
from trialogue.verifiers.functions.answers import call_error, to_number
from trialogue.verifiers.functions.function import FunctionVerifier, Scope, TextVerifier, is_verifier


class Power(Target):
    """Target distribution proportional to p(x)^alpha, where p is the model's distribution. Created by `power`.

    Args:
        alpha: The exponent.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self.most = 1.0 if alpha >= 1 else math.inf

    def log_values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the log-values of some rows.

        The log-value is (alpha - 1) log p(x), where x is the completion and p(x) its model probability.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Logarithms (n,) float64, -inf for completions of probability zero.
        """
        return self._scale_log_probs(decoding.completion_log_probs(rows))

    def log_children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the log-values of some rows followed by each token of the vocabulary.

        The log-value is (alpha - 1) log p(x), where x is the completion including the token, and p(x) its model
        probability.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch that are not complete.

        Returns:
            Logarithms (n, vocab) float64.
        """
        return self._scale_log_probs(decoding.continuation_log_probs(rows))

    def _scale_log_probs(self, log_probs: Tensor) -> Tensor:
        none = log_probs == -math.inf
        return (log_probs.masked_fill(none, 0.0) * (self.alpha - 1)).masked_fill(none, -math.inf)


@validated
def power(alpha: Positive) -> Power:
    """Return the target proportional to p(x)^alpha, where p is the model's distribution of complete sequences x.

    It can be used in place of a verifier, or as a factor of `Product`. The distribution p includes the
    temperature, top-k, top-p and min-p of the run. Sampling at temperature 1 / alpha is different, because it
    normalises at every token. Combine samplers that apply a mask before top-k, top-p or min-p with a
    temperature only.

    Args:
        alpha: The exponent, above 0. An exponent above 1 prefers probable sequences.

    Returns:
        The target.

    Raises:
        InputError: If `alpha` is not a positive number.

    Example:
        >>> from trialogue import power, target_distribution
        >>> from trialogue.data import Table
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])
        >>> {x: round(p, 3) for x, p in target_distribution(table, power(2.0)).items()}
        {(0, 0): 0.667, (0, 1): 0.167, (1, 1): 0.167}

    References:
        Karan and Du (2025), "Reasoning with Sampling: Your Base Model is Smarter Than You Think", arXiv
        2510.14901.
    """
    return Power(alpha)


class Tilted(Target):
    """Target distribution proportional to p(x) exp(beta r(x)) for a model p and a reward r. Created by `tilted`.

    Args:
        reward: Verifier whose values are the rewards.
        beta: Factor of the reward.
        whole: Whether prefixes that are not complete have the reward 0.
    """

    def __init__(self, reward: Verifier, beta: float, whole: bool) -> None:
        self._reward, self._beta, self._whole = reward, beta, whole
        self.scope, self.layers, self.notes = reward.scope, reward.layers, reward.notes

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy whose reward ignores the text from the first stop string onwards.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped._reward = self._reward.up_to(stop)
        return stopped

    def log_values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the log-values of some rows, which are the reward of the sequence times `beta`.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Logarithms (n,) float64.
        """
        log_values = torch.zeros(len(rows), dtype=torch.float64)
        places = decoding.complete[rows].nonzero()[:, 0] if self._whole else torch.arange(len(rows))
        if len(places):
            log_values[places] = self._beta * self._reward.values(decoding, rows[places]).double()
        return log_values


@validated
def tilted(
    reward: Verifier | Callable[[Any], float],
    beta: Finite = 1.0,
    *,
    tokenization: Tokenization | None = None,
    scope: Scope = "sequence",
    whole: bool = True,
    timeout: Positive | None = None,
) -> Tilted:
    """Return the target proportional to p(x) exp(beta r(x)), where p is the model and r(x) the reward of x.

    In the notation of reinforcement learning with a Kullback-Leibler penalty, `beta` is the reciprocal of the penalty.

    Args:
        reward: Function that returns a finite number, which may be negative, or a verifier such as a probe, whose value
            is the reward. A function receives token ids (a tuple of ints), or text if `tokenization` is given.
        beta: Factor of the reward (default: 1). With 0, the target is the model's distribution.
        tokenization: Tokenization that converts token ids to text (default: the function receives token ids).
        scope: "sequence" passes prompt and completion to the function (default), "completion" only the completion.
        whole: Evaluate complete sequences only (default). If False, prefixes are evaluated too, and guide samplers that
            use values, such as `SequentialMonteCarlo`. The target is the same.
        timeout: Maximum duration of a call in seconds (default: no limit).

    Returns:
        The target.

    Raises:
        InputError: If `beta` is not a finite number. During sampling, if the function raises an exception, exceeds the
            timeout, or returns a reward that is not a finite number. With `on_error="reject"`, `generate` rejects these
            sequences and stores the error.

    Example:
        >>> from trialogue import target_distribution, tilted
        >>> from trialogue.data import Table
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])
        >>> {x: round(p, 3) for x, p in target_distribution(table, tilted(sum, 0.5)).items()}
        {(0, 0): 0.314, (0, 1): 0.259, (1, 1): 0.427}
    """
    if isinstance(reward, Verifier) or is_verifier(reward):
        return Tilted(reward, beta, whole)  # type: ignore[arg-type]
    if tokenization is None:
        return Tilted(_Reward(reward, scope, timeout=timeout), beta, whole)
    return Tilted(_TextReward(reward, tokenization, scope, timeout=timeout), beta, whole)


class _Reward(FunctionVerifier):
    """Reward function of token ids. A reward may be negative, unlike the value of another verifier."""

    _kind = "reward"

    def _checked(self, argument: Any, result: Any) -> float:
        reward = to_number(result)
        if not math.isfinite(reward):
            hint = f"it returned {result!r}; return a finite number as the reward"
            raise call_error(self._function, argument, hint, self._kind)
        return reward


class _TextReward(_Reward, TextVerifier):
    """Reward function of text. A reward may be negative, unlike the value of another verifier."""
