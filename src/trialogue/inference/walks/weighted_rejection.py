"""Adaptive weighted rejection sampling (Lipkin et al. 2025): each token exactly by its masked law, with its weight.

No mask is computed: the verifier is asked about the tokens drawn and about no others. Tokens are drawn from the
oracle's law p until one is accepted, rejected ones never again, and then until a second one is accepted. Let r_1..r_K
be the rejected ones, in the order drawn, and m_k = p(r_1) + .. + p(r_k). Then

    Z' = 1 / sum over k = 0..K of 1 / (1 - m_k)

estimates the accepted mass Z = p(A) without bias and is independent of the token accepted first, whose law is p
restricted to A.

Why: the rejected tokens come in this order, with the first acceptance after j of them, with probability
prod_i p(r_i) / (1 - m_(i-1)) times Z / (1 - m_j) times Z / (1 - m_K), whichever token is accepted first. Given the
rejected tokens, j = 0 has therefore the conditional probability Z'. The first draw is accepted with probability Z, so
that E[Z'] = P(j = 0) = Z: Z' is the indicator "the first draw is accepted", Rao-Blackwellised.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import NO_TOKEN, Moves
from trialogue.oracles import Decoding
from trialogue.randomness import Choose


class EstimatedMass(NamedTuple):
    """Logarithm (rows,) of the product of the estimated masses on accepted tokens; once complete, times the value."""

    log_weight: Tensor


@dataclass(frozen=True)
class WeightedRejection:
    """Draw each token by rejection without replacement; weigh it by an unbiased estimate of the accepted mass.

    The law of outputs is that of `TokenwiseRejection` with one query per token, and the verifier judges the tokens
    drawn, never the vocabulary. A positive value accepts a prefix; the value of the complete sequence is a factor of
    its weight. So E[exp(log_weight) f(output)] = sum over complete x of p(x) V(x) f(x) for any f: properly weighted,
    provided that a prefix of value zero has no continuation of positive value. A row whose every token is rejected
    fails with weight zero.
    """

    rows_per_sample: ClassVar[int] = 1
    needs_verifier: ClassVar[bool] = True

    def init(self, decoding: Decoding) -> EstimatedMass:
        """Weight one."""
        return EstimatedMass(torch.zeros(len(decoding.lengths), dtype=torch.float64))

    def step(
        self, decoding: Decoding, state: EstimatedMass, verifier: Judge, choose: Choose
    ) -> tuple[Moves, EstimatedMass]:
        """Append one accepted token to every incomplete row."""
        moves, log_weight = Moves.stay(decoding), state.log_weight.clone()
        moves.done.copy_(decoding.complete)
        complete = decoding.complete.nonzero()[:, 0]
        if complete.numel():
            log_weight[complete] += verifier.values(complete).log()
        growing = decoding.growing
        if growing.numel():
            token, log_mass = draw_accepted(decoding.log_probs(growing), growing, growing, verifier, choose)
            log_weight[growing] += log_mass
            moves.token[growing] = token
            moves.done[growing] = token == NO_TOKEN
        return moves, EstimatedMass(log_weight)


def draw_accepted(
    log_probs: Tensor, prefixes: Tensor, rows: Tensor, verifier: Judge, choose: Choose
) -> tuple[Tensor, Tensor]:
    """For each of n rows draw a token of positive value, and estimate the mass of all such tokens.

    `log_probs` (n, vocab) are of the tokens after the sequences in `prefixes` (n,); `rows` (n,) name the streams of
    `choose`. Returns the tokens (n,), which have exactly the law `log_probs` restricted to the accepted, `NO_TOKEN`
    where all are rejected, and the logarithms (n,) float64 of unbiased estimates of the accepted mass, independent of
    the tokens; -inf where all are rejected.
    """
    left = log_probs.to(torch.float64, copy=True)
    token = torch.full_like(rows, NO_TOKEN)
    # Of sum_k 1 / (1 - m_k). The masses left are summed anew: 1 - m_k would cancel where little is left.
    log_sum = -left.logsumexp(1)
    drawing = torch.arange(len(rows))
    while drawing.numel():
        drawn = choose(left[drawing], rows[drawing])
        accepted = verifier.candidates(prefixes[drawing], drawn) > 0
        first = accepted & (token[drawing] == NO_TOKEN)
        token[drawing[first]] = drawn[first]
        rejected = drawing[~accepted]
        left[rejected, drawn[~accepted]] = -math.inf
        log_left = left[rejected].logsumexp(1)
        log_sum[rejected] = torch.logaddexp(log_sum[rejected], -log_left)
        going_on = first.clone()
        going_on[~accepted] = log_left > -math.inf
        drawing = drawing[going_on]
    return token, -log_sum
