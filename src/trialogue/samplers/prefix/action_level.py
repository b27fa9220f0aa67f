"""Action-level value-guided sampling, which never backtracks."""

import math
from dataclasses import dataclass

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.cut import Cut
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import LogWeight, Sampler, log_values_as_given
from trialogue.samplers.prefix.guidance import weighed_children


@dataclass(frozen=True)
class ActionLevel(Sampler[LogWeight]):
    """Draw each token a after prefix y with weight p(a|y) V(ya), without backtracking.

    The output distribution is the product over tokens of p(a|y) V(ya) / S(y), where S(y) is the sum over a of
    p(a|y) V(ya). For 0/1 values this is masked decoding. It is the target distribution for exact values only, and
    errors of the values multiply along the sequence. The log-weight of a sample is log of p(x) V(x) over its output
    probability. Samples are properly weighted: E[exp(log_weight) f(x)] is the sum over x of p(x) V(x) f(x) for any f,
    provided that a prefix of value zero has no continuation of positive value. This is sequential Monte Carlo with a
    mask and one particle. A row fails with weight zero if no child has positive weight.
    """

    uses = "weights"
    weighted = True
    goes_back = False

    def init(self, decoding: Decoding) -> LogWeight:
        """Return weight one for every row."""
        return LogWeight.zero(decoding)

    def step(
        self, decoding: Decoding, state: LogWeight, verifier: Judge, choose: Choose
    ) -> tuple[Moves, LogWeight]:
        """Append one token to every incomplete row."""
        moves, rows = Moves.stay(decoding), decoding.growing
        moves.done.copy_(decoding.complete)
        log_weight = state.log_weight + log_values_as_given(decoding, verifier)
        if len(rows):
            tokens, weights = weighed_children(decoding, rows, verifier, Cut())
            total = weights.logsumexp(1)
            log_weight[rows] += total
            inner = (decoding.lengths[rows] > decoding.start[rows]).nonzero()[:, 0]
            if len(inner):
                log_weight[rows[inner]] -= verifier.values(rows[inner]).log()
            dead = total == -math.inf
            log_weight[rows[dead]] = -math.inf
            moves.done[rows[dead]] = True
            rows, tokens, weights = rows[~dead], tokens[~dead], weights[~dead]
        if len(rows):
            index = choose(weights, rows)
            moves.token[rows] = tokens.gather(1, index[:, None])[:, 0]
        return moves, LogWeight(log_weight)
