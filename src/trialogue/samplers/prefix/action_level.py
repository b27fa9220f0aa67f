"""Token-by-token sampling in proportion to the verifier's value, without backtracking."""

import math
from dataclasses import dataclass

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.cut import Cut
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import LogWeightState, Sampler, log_values_as_given
from trialogue.samplers.prefix.guidance import weigh_children


@dataclass(frozen=True)
class ActionLevel(Sampler[LogWeightState]):
    """Draw each token in proportion to its probability times the verifier's value, without going back.

    The token a after the prefix y is drawn with probability p(a|y) V(ya) / S(y). Here p is the model, V(ya)
    is the verifier's value of y followed by a, and S(y) is the sum of p(a|y) V(ya) over all tokens a. For
    values of 0 and 1 this is masked decoding. A row fails if no next token has positive weight.

    The target is proportional to p(x) V(x) for complete sequences x. The samples follow it if V(y) is the
    mean value of the completions that the model draws after y. Otherwise errors of the values multiply along
    the sequence.

    The log-weight of a sample corrects this: it is the logarithm of p(x) V(x) divided by the probability of
    the output. For any function f, E[exp(log_weight) f(x)] is the sum over x of p(x) V(x) f(x). This requires
    that a prefix of value zero has no continuation of positive value.
    """

    uses = "weights"
    weighted = True
    goes_back = False
    is_final_when_complete = True

    def init(self, decoding: Decoding) -> LogWeightState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Log-weights (rows,) float64, all zero.
        """
        return LogWeightState.zero(decoding)

    def step(
        self, decoding: Decoding, state: LogWeightState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, LogWeightState]:
        """Append one token a to each incomplete row y, drawn with weight p(a|y) V(ya).

        A row y is one sequence (the prompt and the completion so far). Its importance weight is multiplied by
        S(y) / V(y), where S(y) is the sum of p(a|y) V(ya) over all tokens a, and V counts as 1 at the prompt.
        If S(y) is zero, the row is marked as done with weight zero. Complete rows are marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions p.
            state: Log-weights of the rows.
            verifier: Values V of the rows and of their one-token continuations.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new log-weights.
        """
        moves, rows = Moves.stay(decoding), decoding.growing
        moves.done.copy_(decoding.complete)
        log_weight = state.log_weight + log_values_as_given(decoding, verifier.log_values)
        if len(rows):
            tokens, weights = weigh_children(decoding, rows, verifier, Cut())
            total = weights.logsumexp(1)
            log_weight[rows] += total
            inner = (decoding.lengths[rows] > decoding.start[rows]).nonzero()[:, 0]
            if len(inner):
                log_weight[rows[inner]] -= verifier.log_values(rows[inner])
            dead = total == -math.inf
            log_weight[rows[dead]] = -math.inf
            moves.done[rows[dead]] = True
            rows, tokens, weights = rows[~dead], tokens[~dead], weights[~dead]
        if len(rows):
            index = choose(weights, rows)
            moves.token[rows] = tokens.gather(1, index[:, None])[:, 0]
        return moves, LogWeightState(log_weight)
