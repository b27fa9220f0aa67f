"""Adaptive weighted rejection sampling (Lipkin et al. 2025): tokens from the masked distribution without a mask.

The verifier is called only for tokens that are drawn. Tokens are drawn without replacement from the model's
distribution p until one is accepted, and then until a second one is accepted. Let r_1..r_K be the rejected tokens in
the order drawn, and m_k = p(r_1) + .. + p(r_k). Then

    Z' = 1 / sum over k = 0..K of 1 / (1 - m_k)

is an unbiased estimate of the accepted mass Z = p(A). It is independent of the first accepted token, whose distribution
is p restricted to A.

Proof: the tokens r_1..r_K are rejected in this order, with the first acceptance after j of them, with probability
prod_i p(r_i) / (1 - m_(i-1)) times Z / (1 - m_j) times Z / (1 - m_K), for every first accepted token. Given the
rejected tokens, j = 0 has therefore the conditional probability Z'. The first draw is accepted with probability Z, so
E[Z'] = P(j = 0) = Z. In other words, Z' is the Rao-Blackwellised indicator that the first draw is accepted.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import NO_TOKEN, Moves
from trialogue.samplers.prefix.contract.sampler import Sampler, log_values_as_given

_BLOCK = 256


class Valued(NamedTuple):
    """State of `WeightedRejection`.

    Attributes:
        log_weight: Logarithm (rows,) of the product of the estimated masses times the value of the prefix.
        log_value: Logarithm (rows,) of the value of the prefix. The value of a prompt is one unless it is complete.
    """

    log_weight: Tensor
    log_value: Tensor


class Draw(NamedTuple):
    """Drawn tokens (n,), log of the estimated accepted mass (n,) float64, and log-value (n,) float64 of the tokens."""

    token: Tensor
    log_mass: Tensor
    log_value: Tensor


@dataclass(frozen=True)
class WeightedRejection(Sampler[Valued]):
    """Draw each token by rejection without replacement, weighted by an unbiased estimate of the accepted mass.

    The output distribution is the same as for `TokenwiseRejection`, with one model call per token. The verifier is
    called only for tokens that are drawn. A prefix is accepted if its value is positive, and the value of the complete
    sequence is a factor of the weight. Samples are properly weighted: E[exp(log_weight) f(output)] is the sum over
    complete x of p(x) V(x) f(x) for any f, provided that a prefix of value zero has no continuation of positive value.
    A row fails with weight zero if all tokens are rejected.
    """

    uses = "verdicts"
    weighted = True
    goes_back = False

    def init(self, decoding: Decoding) -> Valued:
        """Return weight one for every row."""
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
    """Draw one token of positive value per row, and estimate the mass of all such tokens.

    Args:
        log_probs: Log-probabilities (n, vocab) of the next token.
        prefixes: Rows (n,) int64 that hold the prefixes.
        rows: Rows (n,) int64 whose random streams are used.
        verifier: The values.
        choose: The source of randomness.

    Returns:
        Tokens from `log_probs` restricted to the accepted tokens, `NO_TOKEN` if all are rejected. The estimates are
        unbiased, independent of the tokens, and zero if all tokens are rejected.
    """
    # Drawing a block of the vocabulary and then a token costs only the square root of the vocabulary.
    vocab = log_probs.shape[1]
    size = min(_BLOCK, vocab)
    left = pad(log_probs, (0, -vocab % size), value=-math.inf) if vocab % size else log_probs.clone()
    left = left.view(len(rows), -1, size)
    mass = _block_masses(left)
    token, log_value = torch.full_like(rows, NO_TOKEN), mass.new_zeros(len(rows))
    # Logarithm of sum_k 1 / (1 - m_k). Remaining masses are summed, because 1 - m_k would cancel if little is left.
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
    """Return the `logsumexp` (...) float64 of `log_probs` (..., k) over the last axis, twice as fast as in torch."""
    most = log_probs.amax(-1)
    masses = most.double() - log_probs.log_softmax(-1).amax(-1)
    return masses.masked_fill_(most == -math.inf, -math.inf)
