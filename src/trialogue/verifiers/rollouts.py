"""Values estimated by rollouts: the mean outcome of completions that are sampled from the oracle."""

import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Count, NonNegative, validated
from trialogue.verifiers.functions.function import VerifierLike, as_verifier
from trialogue.verifiers.random import prefix_keys

_MAX_PARALLEL_ROLLOUTS = 256


@validated
class RolloutValues(Verifier):
    """Value function that estimates the value of a prefix by the mean outcome of sampled completions.

    The value of a complete sequence is its outcome. Every token of a rollout counts as a model call of the sample being
    generated, so rollouts use up its query budget. The completions depend only on `seed` and the prefix. A prefix
    therefore always has the same value, and a sample does not depend on the other samples of the batch.

    Args:
        outcome: Verifier or function of a prefix that evaluates complete sequences.
        rollouts: Completions per prefix (default: 8).
        floor: Lower bound of the estimates (default: 0.5 / rollouts). With a bound of 0, a prefix would be rejected
            although it can be completed.
        seed: Random seed (default: 0).
    """

    def __init__(
        self, outcome: VerifierLike, rollouts: Count = 8, *, floor: NonNegative | None = None, seed: int = 0
    ) -> None:
        self._outcome, self._rollouts = as_verifier(outcome), rollouts
        self._floor = 0.5 / self._rollouts if floor is None else floor
        self._seed = seed_of(seed, "rollouts")
        self.most = max(self._outcome.most, self._floor)
        self.layers, self.notes, self.parser = self._outcome.layers, self._outcome.notes, self._outcome.parser

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the outcomes of complete sequences, and the mean outcomes of sampled completions of prefixes.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64, one for each index in `rows`. Estimates below the lower bound `floor` are set to this
            bound.
        """
        values = torch.zeros(len(rows), dtype=torch.float64)
        complete = decoding.complete[rows]
        ended, inner = complete.nonzero()[:, 0], (~complete).nonzero()[:, 0]
        if len(ended):
            values[ended] = self._outcome.values(decoding, rows[ended]).double()
        for chunk in inner.split(max(1, _MAX_PARALLEL_ROLLOUTS // self._rollouts)):
            values[chunk] = self._estimates(decoding, rows[chunk]).clamp_min(self._floor)
        return values

    def _estimates(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the mean outcomes (n,) of the completions of the prefixes in `rows` (n,)."""
        active = rows.repeat_interleave(self._rollouts)
        number = torch.arange(self._rollouts).repeat(len(rows))
        keys = prefix_keys(self._seed, decoding, rows).repeat_interleave(self._rollouts)
        streams = Streams(self._seed, keys + number)
        outcomes = torch.zeros(len(active), dtype=torch.float64)
        rollout = torch.arange(len(active))
        while len(rollout):
            tokens = streams.choose(decoding.log_probs(active), rollout)
            decoding = decoding.peek(tokens, active)
            ended, growing = decoding.complete.nonzero()[:, 0], decoding.growing
            if len(ended):
                outcomes[rollout[ended]] = self._outcome.values(decoding, ended).double()
            active, rollout = growing, rollout[growing]
        return outcomes.view(-1, self._rollouts).mean(1)
