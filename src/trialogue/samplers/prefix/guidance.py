"""Weights of the next tokens in value-guided samplers."""

import math

from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.samplers.cut import Cut
from trialogue.samplers.prefix.batch import Children
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier, fast_log
from trialogue.samplers.prefix.contract.sampler import require_support


def weigh_children(decoding: Decoding, rows: Tensor, verifier: CachedVerifier, cut: Cut) -> Children:
    """Compute the weight p(a|y) V(ya) of every next token a of incomplete prefixes y.

    Here p is the model, and V(ya) is the verifier's value of y followed by a. Each row counts as one model call.

    Args:
        decoding: The batch of sequences (rows), each a prompt and the completion so far.
        rows: Indices (n,) int64 of rows that are not complete.
        verifier: Values V of the one-token continuations.
        cut: Truncation of p restricted to tokens of positive value. Tokens that it removes get weight zero.

    Returns:
        Tokens (n, k) int64 and their log-weights (n, k) float64. Log-weight -inf marks excluded tokens and padding.
    """
    log_probs = decoding.log_probs(rows)

    def weigh(some: Tensor) -> Tensor:
        distributions = log_probs[some].double()
        require_support(distributions)
        if cut.keeps_all:
            return distributions + verifier.log_children(rows[some], distributions > -math.inf)
        values = verifier.leading_children(rows[some], distributions, verdicts=True, cut=cut)
        allowed = distributions.masked_fill(values <= 0, -math.inf)
        open_ = (allowed.amax(1) > -math.inf).nonzero()[:, 0]
        allowed[open_] = allowed[open_].masked_fill(cut(allowed[open_]) == -math.inf, -math.inf)
        if verifier.has_targets:
            return allowed + verifier.log_children(rows[some], allowed > -math.inf)
        return allowed + fast_log(values)

    return verifier.weigh_children(rows, weigh)
