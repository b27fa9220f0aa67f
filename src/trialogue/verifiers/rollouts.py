"""Values estimated by rollouts: the mean outcome of completions that are sampled from the oracle."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Target, Verifier
from trialogue.randomness import Streams, derive_seed
from trialogue.validation import Count, NonNegative, validated
from trialogue.verifiers.combination import require_no_target
from trialogue.verifiers.functions.function import VerifierLike, as_verifier
from trialogue.verifiers.random import prefix_keys

_MAX_PARALLEL_ROLLOUTS = 256


@validated
class RolloutValues(Verifier):
    """Value function that estimates the value of a prefix by the mean outcome of sampled completions (rollouts).

    The value of a complete sequence is its outcome. Every token of a rollout counts as a model call of the
    sample being generated. The completions depend only on `seed` and the prefix, so a prefix always has the
    same value.

    Args:
        outcome: Verifier or function of a prefix that evaluates complete sequences.
        rollouts: Completions per prefix (default: 8).
        floor: Lower bound of the estimates (default: 0.5 / rollouts). With a bound of 0, a prefix would be
            rejected although it can be completed.
        seed: Random seed (default: 0).

    Raises:
        InputError: If `outcome` is a `Target`, whose values can be far below any `floor`. Use
            `RolloutTarget`.
    """

    def __init__(
        self, outcome: VerifierLike, rollouts: Count = 8, *, floor: NonNegative | None = None, seed: int = 0
    ) -> None:
        self._outcome, self._rollouts = as_verifier(outcome), rollouts
        require_no_target("outcome", self._outcome, "use RolloutTarget for a target")
        self._floor = 0.5 / self._rollouts if floor is None else floor
        self._seed = derive_seed(seed, "rollouts")
        self.most = max(self._outcome.most, self._floor)
        self.layers, self.notes, self.parser = self._outcome.layers, self._outcome.notes, self._outcome.parser

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy whose outcomes ignore the text from the first stop string onwards.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped._outcome = self._outcome.up_to(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the outcomes of complete sequences, and the mean outcomes of sampled completions of prefixes.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64, one for each index in `rows`. Estimates below the lower bound `floor` are set to this
            bound.
        """
        outcomes = sampled_outcomes(decoding, rows, self._outcome.values, self._rollouts, self._seed)
        estimates = outcomes.mean(1)
        return torch.where(decoding.complete[rows], estimates, estimates.clamp_min(self._floor))


@validated
class RolloutTarget(Target):
    """Target that estimates the values of prefixes from sampled completions (rollouts).

    The log-value of a prefix is the logarithm of the mean of exp(v) over sampled completions, where v is the
    log-value of another target. That of a complete sequence is v, so the target distribution is the same. The
    estimates guide samplers that use the values of prefixes, such as `SequentialMonteCarlo`. Tokens of
    rollouts count as model calls. The completions depend only on `seed` and the prefix.

    Args:
        target: The target.
        rollouts: Completions per prefix (default: 8).
        seed: Random seed (default: 0).
    """

    def __init__(self, target: Target, rollouts: Count = 8, *, seed: int = 0) -> None:
        if not isinstance(target, Target):
            raise InputError("target", type(target).__name__, "give one target, such as power(2.0)")
        self._target, self._rollouts, self._seed = target, rollouts, derive_seed(seed, "rollouts")
        self.scope, self.layers, self.notes = target.scope, target.layers, target.notes

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy of the target that ignores the text from the first stop string onwards.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        target = self._target.up_to(stop)
        assert isinstance(target, Target)
        stopped._target = target
        return stopped

    def log_values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return v of complete sequences, and the logarithm of the mean of exp(v) over completions of prefixes.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Logarithms (n,) float64.
        """
        outcomes = sampled_outcomes(decoding, rows, self._target.log_values, self._rollouts, self._seed)
        return outcomes.logsumexp(1) - math.log(self._rollouts)


def sampled_outcomes(
    decoding: Decoding,
    rows: Tensor,
    outcome: Callable[[Decoding, Tensor], Tensor],
    rollouts: int,
    seed: int,
) -> Tensor:
    """Evaluate the outcome of complete sequences, and of sampled completions of prefixes.

    Args:
        decoding: Batch of sequences.
        rows: Indices (n,) int64 of the rows of the batch.
        outcome: Function from a batch and rows (m,) of complete sequences to their outcomes (m,).
        rollouts: Number of completions per prefix.
        seed: Seed of the random streams.

    Returns:
        Outcomes (n, rollouts) float64. All entries of a complete sequence are its outcome.
    """
    results = torch.zeros(len(rows), rollouts, dtype=torch.float64)
    complete = decoding.complete[rows]
    ended, inner = complete.nonzero()[:, 0], (~complete).nonzero()[:, 0]
    if len(ended):
        results[ended] = outcome(decoding, rows[ended]).double()[:, None]
    for chunk in inner.split(max(1, _MAX_PARALLEL_ROLLOUTS // rollouts)):
        results[chunk] = _sample_outcomes(decoding, rows[chunk], outcome, rollouts, seed)
    return results


def _sample_outcomes(
    decoding: Decoding,
    rows: Tensor,
    outcome: Callable[[Decoding, Tensor], Tensor],
    rollouts: int,
    seed: int,
) -> Tensor:
    """Return the outcomes (n, rollouts) of sampled completions of the prefixes in `rows` (n,)."""
    active = rows.repeat_interleave(rollouts)
    number = torch.arange(rollouts).repeat(len(rows))
    streams = Streams(seed, prefix_keys(seed, decoding, rows).repeat_interleave(rollouts) + number)
    outcomes = torch.zeros(len(active), dtype=torch.float64)
    rollout = torch.arange(len(active))
    while len(rollout):
        tokens = streams.choose(decoding.log_probs(active), rollout)
        decoding = decoding.peek(tokens, active)
        ended, growing = decoding.complete.nonzero()[:, 0], decoding.growing
        if len(ended):
            outcomes[rollout[ended]] = outcome(decoding, ended).double()
        active, rollout = growing, rollout[growing]
    return outcomes.view(-1, rollouts)
