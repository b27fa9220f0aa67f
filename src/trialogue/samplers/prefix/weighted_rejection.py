"""Adaptive weighted rejection sampling (Lipkin et al. 2025): each token exactly by its masked distribution, with its
weight.

No mask is computed: the verifier is asked about the tokens drawn and about no others. Tokens are drawn from the
oracle's distribution p until one is accepted, rejected ones never again, and then until a second one is accepted. Let
r_1..r_K be the rejected ones, in the order drawn, and m_k = p(r_1) + .. + p(r_k). Then

    Z' = 1 / sum over k = 0..K of 1 / (1 - m_k)

estimates the accepted mass Z = p(A) without bias and is independent of the token accepted first, whose distribution is
p restricted to A.

Why: the rejected tokens come in this order, with the first acceptance after j of them, with probability
prod_i p(r_i) / (1 - m_(i-1)) times Z / (1 - m_j) times Z / (1 - m_K), whichever token is accepted first. Given the
rejected tokens, j = 0 has therefore the conditional probability Z'. The first draw is accepted with probability Z, so
that E[Z'] = P(j = 0) = Z: Z' is the indicator "the first draw is accepted", Rao-Blackwellised.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import NO_TOKEN, Moves
from trialogue.samplers.prefix.sampler import Sampler, log_values_as_given

_BLOCK = 256


class Valued(NamedTuple):
    """Per row (rows,): logarithm of the product of estimated masses times the value of the prefix, and of that value.

    The value of the prompt counts as one, unless the prompt is complete.
    """

    log_weight: Tensor
    log_value: Tensor


class Draw(NamedTuple):
    """Tokens (n,), logarithms (n,) float64 of the estimated accepted masses, and of the values of the tokens drawn."""

    token: Tensor
    log_mass: Tensor
    log_value: Tensor


@dataclass(frozen=True)
class WeightedRejection(Sampler[Valued]):
    """Draw each token by rejection without replacement; weigh it by an unbiased estimate of the accepted mass.

    The distribution of outputs is that of `TokenwiseRejection` with one query per token, and the verifier judges the
    tokens drawn, never the vocabulary. A positive value accepts a prefix; the value of the complete sequence is a
    factor of its weight. So E[exp(log_weight) f(output)] = sum over complete x of p(x) V(x) f(x) for any f: properly
    weighted, provided that a prefix of value zero has no continuation of positive value. A row whose every token is
    rejected fails with weight zero.
    """

    uses = "verdicts"
    weighted = True
    goes_back = False

    def init(self, decoding: Decoding) -> Valued:
        """Weight one."""
        zeros = torch.zeros(len(decoding.lengths), dtype=torch.float64)
        return Valued(zeros, zeros.clone())

    def step(
        self, decoding: Decoding, state: Valued, verifier: Judge, choose: Choose
    ) -> tuple[Moves, Valued]:
        """Append one accepted token to every incomplete row."""
        moves = Moves.stay(decoding)
        log_weight = state.log_weight + log_values_as_given(decoding, verifier)
        log_value = state.log_value.clone()
        moves.done.copy_(decoding.complete)
        growing = decoding.growing
        if growing.numel():
            draw = draw_accepted(decoding.log_probs(growing), growing, growing, verifier, choose)
            log_weight[growing] += draw.log_mass + draw.log_value - log_value[growing]
            log_value[growing] = draw.log_value
            moves.token[growing] = draw.token
            moves.done[growing] = draw.token == NO_TOKEN
        return moves, Valued(log_weight, log_value)


def draw_accepted(log_probs: Tensor, prefixes: Tensor, rows: Tensor, verifier: Judge, choose: Choose) -> Draw:
    """For each of n rows draw a token of positive value, and estimate the mass of all such tokens.

    `log_probs` (n, vocab) are of the tokens after the sequences in `prefixes` (n,); `rows` (n,) name the streams of
    `choose`. The tokens have exactly the distribution `log_probs` restricted to the accepted, and are `NO_TOKEN` where
    all are rejected; the estimates of the accepted mass are unbiased and independent of the tokens, and zero where all
    are rejected.
    """
    # First a block of the vocabulary, then a token of the block: a draw costs the square root of the vocabulary.
    vocab = log_probs.shape[1]
    size = min(_BLOCK, vocab)
    left = pad(log_probs, (0, -vocab % size), value=-math.inf) if vocab % size else log_probs.clone()
    left = left.view(len(rows), -1, size)
    mass = _block_masses(left)
    token, log_value = torch.full_like(rows, NO_TOKEN), mass.new_zeros(len(rows))
    # Of sum_k 1 / (1 - m_k). The masses left are summed anew: 1 - m_k would cancel where little is left.
    log_sum = -mass.logsumexp(1)
    drawing = torch.arange(len(rows))
    while drawing.numel():
        block = torch.zeros_like(drawing)
        if mass.shape[1] > 1:
            block = choose(mass[drawing], rows[drawing])
        place = choose(left[drawing, block], rows[drawing])
        drawn = block * _BLOCK + place
        values = verifier.candidates(prefixes[drawing], drawn)
        accepted = values > 0
        first = accepted & (token[drawing] == NO_TOKEN)
        token[drawing[first]], log_value[drawing[first]] = drawn[first], values[first].log()
        going_on = first
        if not bool(accepted.all()):
            rejected, block = drawing[~accepted], block[~accepted]
            left[rejected, block, place[~accepted]] = -math.inf
            mass[rejected, block] = _block_masses(left[rejected, block])
            log_left = mass[rejected].logsumexp(1)
            log_sum[rejected] = torch.logaddexp(log_sum[rejected], -log_left)
            going_on = first.masked_scatter(~accepted, log_left > -math.inf)
        drawing = drawing[going_on]
    return Draw(token, -log_sum, log_value)


def _block_masses(log_probs: Tensor) -> Tensor:
    """Log-masses (...) float64 of blocks `log_probs` (..., k): `logsumexp`, of which torch's takes twice as long."""
    most = log_probs.amax(-1)
    masses = most.double() - log_probs.log_softmax(-1).amax(-1)
    return masses.masked_fill_(most == -math.inf, -math.inf)
