"""Values estimated by rollouts: the mean outcome of completions that the oracle draws, whose queries count."""

import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Count, NonNegative, validated
from trialogue.verifiers.function import VerifierLike, as_verifier
from trialogue.verifiers.random import keys_of_prefixes

_AT_ONCE = 256


@validated
class RolloutValues(Verifier):
    """V(y) as the mean `outcome` of `rollouts` completions of y that the oracle draws; of a complete y the outcome.

    Every token drawn is a query of the sample that asked: on a budget of queries, rollouts are what it goes on. An
    estimate below `floor` counts as `floor`, by default half of what one completion of outcome 1 is worth: the value 0
    would cut off what can be reached. The completions of a prefix depend on `seed` and on the prefix alone, so that it
    keeps its value, and a sample does not depend on what else is drawn.
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
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        values = torch.zeros(len(rows), dtype=torch.float64)
        complete = decoding.complete[rows]
        given, inner = complete.nonzero()[:, 0], (~complete).nonzero()[:, 0]
        if len(given):
            values[given] = self._outcome.values(decoding, rows[given]).double()
        for some in inner.split(max(1, _AT_ONCE // self._rollouts)):
            values[some] = self._estimates(decoding, rows[some]).clamp_min(self._floor)
        return values

    def _estimates(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Mean outcomes (n,) of completions of the prefixes in `rows` (n,)."""
        asked = rows.repeat_interleave(self._rollouts)
        number = torch.arange(self._rollouts).repeat(len(rows))
        keys = keys_of_prefixes(self._seed, decoding, rows).repeat_interleave(self._rollouts)
        streams = Streams(self._seed, keys + number)
        outcomes = torch.zeros(len(asked), dtype=torch.float64)
        place = torch.arange(len(asked))
        while len(place):
            tokens = streams.choose(decoding.log_probs(asked), place)
            decoding = decoding.peek(tokens, asked)
            ended, going_on = decoding.complete.nonzero()[:, 0], decoding.growing
            if len(ended):
                outcomes[place[ended]] = self._outcome.values(decoding, ended).double()
            asked, place = going_on, place[going_on]
        return outcomes.view(-1, self._rollouts).mean(1)
