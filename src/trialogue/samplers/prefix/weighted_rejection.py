"""Adaptive weighted rejection sampling (Lipkin et al. 2025), which calls the verifier only for drawn tokens.

Tokens are drawn without replacement from the model's distribution p until one is accepted, and then until a second one
is accepted. Let r_1..r_K be the rejected tokens in the order drawn, and m_k = p(r_1) + .. + p(r_k). Then

    Z' = 1 / sum over k = 0..K of 1 / (1 - m_k)

is an unbiased estimate of the accepted mass Z = p(A), the total probability of the set A of accepted tokens. It is
independent of the first accepted token, whose distribution is p restricted to A.

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
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import NO_TOKEN, Moves
from trialogue.samplers.prefix.contract.sampler import Sampler, log_values_as_given

_BLOCK = 256


class WeightedRejectionState(NamedTuple):
    """State of `WeightedRejection`: an importance weight and a verifier value for each row.

    Attributes:
        log_weight: Logarithm (rows,) float64 of the weight: the value of the prefix times, for each token so
            far, the estimated probability of all accepted tokens.
        log_value: Logarithm (rows,) float64 of the verifier's value of the prefix, 0 for incomplete prompts.
    """

    log_weight: Tensor
    log_value: Tensor


class Draw(NamedTuple):
    """Result of `draw_accepted` for n rows.

    Attributes:
        token: Drawn token (n,) int64, or -1 (`NO_TOKEN`) if all tokens were rejected.
        log_mass: Logarithm (n,) float64 of the estimated total probability of the accepted tokens.
        log_value: Logarithm (n,) float64 of the verifier's value of each prefix with the drawn token.
    """

    token: Tensor
    log_mass: Tensor
    log_value: Tensor


@dataclass(frozen=True)
class WeightedRejection(Sampler[WeightedRejectionState]):
    """Draw each token by rejection without replacement, and weight the sample to correct the distribution.

    Tokens are drawn without replacement until the verifier accepts two, and the first of them is appended.
    The rejected tokens give an unbiased estimate of the total probability of the accepted tokens. A row fails
    with weight zero if all tokens are rejected. There is one model call per token, and the verifier is called
    only for tokens that are drawn.

    The output distribution is the same as for `TokenwiseRejection`. The weight of a sample is the product of
    these estimates over all positions, times the value V(x) of the complete sequence. For any function f,
    E[exp(log_weight) f(output)] is the sum over complete sequences x of p(x) V(x) f(x), where p is the model.
    This requires that a prefix of value zero has no continuation of positive value.
    """

    uses = "verdicts"
    weighted = True
    goes_back = False
    is_final_when_complete = True

    def init(self, decoding: Decoding) -> WeightedRejectionState:
        """Return the state of rows at their prompts, with weight one and value one for every row.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Log-weights and log-values (rows,), all zero.
        """
        zeros = torch.zeros(len(decoding.lengths), dtype=torch.float64)
        return WeightedRejectionState(zeros, zeros.clone())

    def step(
        self, decoding: Decoding, state: WeightedRejectionState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, WeightedRejectionState]:
        """Append one accepted token to each incomplete row, and multiply its weight by the estimated accepted mass.

        The weight is also multiplied by the new value of the row divided by its previous value. A row whose tokens are
        all rejected is marked as done with weight zero, and complete rows are marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: Log-weights and log-values of the rows.
            verifier: Values of the rows followed by a token. The value 0 rejects the token.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        moves = Moves.stay(decoding)
        log_weight = state.log_weight + log_values_as_given(
            decoding, lambda rows: verifier.values(rows).log()
        )
        log_value = state.log_value.clone()
        moves.done.copy_(decoding.complete)
        growing = decoding.growing
        if growing.numel():
            draw = draw_accepted(decoding.log_probs(growing), growing, growing, verifier, choose)
            log_weight[growing] += draw.log_mass + draw.log_value - log_value[growing]
            log_value[growing] = draw.log_value
            moves.token[growing] = draw.token
            moves.done[growing] = draw.token == NO_TOKEN
        return moves, WeightedRejectionState(log_weight, log_value)


def draw_accepted(
    log_probs: Tensor, prefixes: Tensor, rows: Tensor, verifier: CachedVerifier, choose: Choose
) -> Draw:
    """Draw one accepted token per row, and estimate the total probability of the accepted tokens.

    A token is accepted if the verifier gives the prefix that ends with it a positive value. Tokens are drawn
    without replacement until two are accepted. The first is returned, and the rejected tokens determine the
    estimate.

    Args:
        log_probs: Log-probabilities (n, vocab) of the next token.
        prefixes: Rows (n,) int64 that hold the prefixes.
        rows: Rows (n,) int64 whose random streams are used.
        verifier: Values of the rows followed by a token.
        choose: Function that draws one index per row in proportion to given weights.

    Returns:
        The tokens (`NO_TOKEN` if all are rejected), the logarithms of the estimates, which are unbiased and
        independent of the token, and the log-values.
    """
    # Drawing a block of the vocabulary and then a token costs only the square root of the vocabulary.
    vocab = log_probs.shape[1]
    size = min(_BLOCK, vocab)
    left = pad(log_probs, (0, -vocab % size), value=-math.inf) if vocab % size else log_probs.clone()
    left = left.view(len(rows), -1, size)
    mass = log_masses(left)
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
            mass[rejected, block] = log_masses(left[rejected, block])
            log_left = mass[rejected].logsumexp(1)
            log_sum[rejected] = torch.logaddexp(log_sum[rejected], -log_left)
            going_on = first.masked_scatter(~accepted, log_left > -math.inf)
        drawing = drawing[going_on]
    return Draw(token, -log_sum, log_value)


def log_masses(log_probs: Tensor) -> Tensor:
    """Return `logsumexp` (...) float64 over the last axis of `log_probs` (..., k), twice as fast as PyTorch."""
    most = log_probs.amax(-1)
    masses = most.double() - log_probs.log_softmax(-1).amax(-1)
    return masses.masked_fill_(most == -math.inf, -math.inf)
