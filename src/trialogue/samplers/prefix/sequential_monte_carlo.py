"""Sequential Monte Carlo sampling."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import (
    GroupSize,
    Sampler,
    log_values_as_given,
    require_support,
    truncated_distribution,
)
from trialogue.samplers.prefix.weighted_rejection import draw_accepted
from trialogue.validation import Share, validated

_ENTRIES = 1 << 20
"""Number of weights per call of `choose`."""
_TIE = 1e-9  # The decision to resample must not depend on how the batch rounds sums.


class ParticleState(NamedTuple):
    """State of `SequentialMonteCarlo`: the weights of the particles, each of which is one sequence (row).

    Attributes:
        log_weight: Logarithm (rows,) float64 of p(y) / q(y) for the prefix y of each particle, where p is the
            model and q the distribution from which tokens are drawn. Resampling makes the weights of a
            sample's particles equal. In a finished sample, every entry is the logarithm of the mean weight.
        drawn: Changes (rows, particles) float64 of `log_weight` by the last drawn tokens, for all particles
            of each row's sample. They are added in the next step. Shape (rows, 0) if tokens are drawn from
            the model, because then the changes are zero.
    """

    log_weight: Tensor
    drawn: Tensor


class ParticleValues(NamedTuple):
    """Verifier values of all particles y in one step, before the next tokens are drawn.

    Attributes:
        log_value: Logarithm (rows,) float64 of the verifier's value V(y). With a mask, the logarithm of the
            sum over tokens a of p(a|y) V(ya) for incomplete rows.
        place: Index (rows,) int64 of each row in the following two tensors. They are empty without a mask.
        log_weights: Unnormalised log-probabilities (n, vocab) from which the next token is drawn.
        log_values: Logarithms (n, vocab) of the values V(ya) of the one-token continuations.
    """

    log_value: Tensor
    place: Tensor
    log_weights: Tensor
    log_values: Tensor


@validated
@dataclass(frozen=True)
class SequentialMonteCarlo(Sampler[ParticleState]):
    """Sequential Monte Carlo: weighted particles that are resampled when their weights degenerate.

    Several sequences (particles) grow together for one sample, and each new token multiplies the weight of
    its particle. When a few particles hold most of the weight, all particles are replaced by copies of
    particles drawn in proportion to the weights (resampling). The output is one particle drawn in proportion
    to the weights. Its log-weight is the logarithm of the mean weight.

    The target is proportional to p(x) V(x), where p(x) is the model's probability of a complete sequence x,
    and V(x) is the verifier's value. For any function f, E[exp(log_weight) f(output)] is the sum over
    complete x of p(x) V(x) f(x). This requires that a prefix of value zero has no continuation of positive
    value. If the mask comes before top-k and top-p, p is the distribution at the given temperature, and x
    ranges over the sequences that top-k and top-p can reach. Otherwise p is the truncated distribution.

    `proposal` selects how the token a after the prefix y is drawn. "oracle" draws it from the model's p(a|y)
    and multiplies the weight by V(ya) / V(y). "mask" draws it in proportion to p(a|y) V(ya) and multiplies
    the weight by the sum over a of p(a|y) V(ya) / V(y), which is known before resampling. "rejection" draws
    it from p(a|y) restricted to positive V(ya), by weighted rejection and without a mask. It multiplies the
    weight by V(ya) / V(y) times an estimate of the total probability of these tokens.

    Args:
        particles: Number of particles per sample (default: 8).
        ess_threshold: Resample when the effective sample size falls below this share of the particles
            (default: 0.5).
        proposal: How to draw the next token of a particle (default: oracle).
        resampling: Draw ancestors independently or by one uniform number (default: multinomial).
        mask_first: Apply the mask before top-k and top-p, for proposal=mask (default: True).

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> from trialogue.samplers import SequentialMonteCarlo
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, sampler=SequentialMonteCarlo(), verifier=lambda x: x != (0, 0), num_samples=4)
        >>> samples.completions()
        [(1, 1), (1, 1), (1, 1), (1, 1)]
    """

    particles: GroupSize = 8
    ess_threshold: Share = 0.5
    proposal: Literal["oracle", "mask", "rejection"] = "oracle"
    resampling: Literal["multinomial", "systematic"] = "multinomial"
    mask_first: bool = True
    uses = "weights"
    weighted = True

    @property
    def masks_first(self) -> bool:
        """Whether the mask is applied before top-k and top-p, which requires `proposal="mask"` and `mask_first`."""
        return self.proposal == "mask" and self.mask_first

    @property
    def rows_per_sample(self) -> int:
        """Number of rows of the batch that belong to one sample, one row for each particle."""
        return self.particles

    def init(self, decoding: Decoding) -> ParticleState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Log-weights (rows,) float64 and their changes by the last tokens, all zero.
        """
        zeros = torch.zeros(len(decoding.lengths), dtype=torch.float64)
        return ParticleState(
            zeros, zeros[:, None].repeat(1, 0 if self.proposal == "oracle" else self.particles)
        )

    def step(
        self, decoding: Decoding, state: ParticleState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, ParticleState]:
        """Update the weights of the particles, resample them where needed, and append one token to growing particles.

        Particles are resampled if the effective sample size of a sample's weights is below the threshold.
        Their weights then become equal. A particle that is complete or has weight zero receives no token. If
        this applies to all particles of a sample, one of them is drawn as the output, and the sample is
        marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: Log-weights of the particles, and the changes by their last tokens that are not yet
                included.
            verifier: Values of the rows and of their one-token continuations.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        n, moves = self.particles, Moves.stay(decoding)
        member = torch.arange(len(decoding.lengths)) % n
        log_weight = state.log_weight.clone()
        if self.proposal != "oracle":
            log_weight += state.drawn.gather(1, member[:, None])[:, 0]
        outlook = self._evaluate_particles(decoding, verifier, log_weight > -math.inf)
        weights = (log_weight + outlook.log_value).view(-1, n)
        total, dead = weights.logsumexp(1), weights == -math.inf
        log_mean, extinct = total - math.log(n), total == -math.inf
        finished = (decoding.complete.view(-1, n) | dead).all(1) & ~extinct
        log_ess = 2 * total - (2 * weights).logsumexp(1)
        degenerate = log_ess < math.log(max(self.ess_threshold * n, _TIE)) - _TIE
        # A finished group draws its output, and other groups draw an ancestor for every row.
        for groups, draw in (
            ((degenerate & ~finished & ~extinct).nonzero()[:, 0], self._draw_ancestors),
            (finished.nonzero()[:, 0], _draw_output),
        ):
            if len(groups):
                rows = groups[:, None] * n + torch.arange(n)
                moves.source[rows] = groups[:, None] * n + draw(weights[groups], rows, choose)
                # The weights are equal and include the value, which the next step multiplies in again.
                log_weight[rows] = log_mean[groups, None] - outlook.log_value[rows]
        log_weight = log_weight.masked_fill(dead.flatten(), -math.inf).view(-1, n)
        log_weight = torch.where(finished[:, None], log_mean[:, None], log_weight).flatten()
        moves.length.copy_(decoding.lengths[moves.source])
        moves.done.copy_((extinct | finished).repeat_interleave(n))
        growing = ~moves.done & ~decoding.complete[moves.source] & ~dead.flatten()[moves.source]
        drawing = growing.nonzero()[:, 0]
        drawn = torch.zeros_like(state.drawn)
        if len(drawing):
            token, added = self._draw(decoding, moves.source[drawing], drawing, outlook, verifier, choose)
            moves.token[drawing] = token
            if self.proposal != "oracle":
                drawn.view(-1, n, n)[drawing // n, :, drawing % n] = added[:, None]
        return moves, ParticleState(log_weight, drawn)

    def arranged(
        self, tokens: Tensor, lengths: Tensor, state: ParticleState
    ) -> tuple[Tensor, Tensor, ParticleState]:
        """Return the particles of each sample in sorted order, if their order does not affect the output distribution.

        It does with systematic resampling, and with `proposal="oracle"`: if all weights are zero, the output
        is the first particle.

        Args:
            tokens: Token ids (rows, capacity) int64, 0 beyond `lengths`.
            lengths: Lengths (rows,) int64.
            state: The state after a step.

        Returns:
            Tokens, lengths and state of the sorted particles. The log-weights include the changes by the last
            tokens.
        """
        if self.resampling != "multinomial" or self.proposal == "oracle":
            return tokens, lengths, state
        row = torch.arange(len(lengths))
        log_weight = state.log_weight + state.drawn[row, row % self.particles]
        order = np.lexsort((log_weight.numpy(), *tokens.numpy().T, lengths.numpy(), row // self.particles))
        sorted_ = ParticleState(log_weight[order], torch.zeros_like(state.drawn))
        return tokens[order], lengths[order], sorted_

    def _evaluate_particles(
        self, decoding: Decoding, verifier: CachedVerifier, alive: Tensor
    ) -> ParticleValues:
        """Compute the values of all particles, from the values of their one-token continuations if there is a mask."""
        log_value = log_values_as_given(decoding, verifier.log_values)
        place = torch.zeros_like(decoding.lengths)
        log_weights = log_values = log_value.new_zeros(0, decoding.vocab_size)
        weighed = alive & (decoding.lengths > decoding.start)
        if self.proposal == "mask":
            weighed &= decoding.complete
            incomplete = (alive & ~decoding.complete).nonzero()[:, 0]
            if len(incomplete):
                log_probs = decoding.log_probs(incomplete, cut=not self.mask_first).double()
                if self.mask_first:
                    log_values = verifier.leading_log_children(incomplete, log_probs)
                else:
                    log_values = verifier.log_children(incomplete, log_probs > -math.inf)
                log_weights = log_probs + log_values
                if self.mask_first:
                    open_ = (log_weights.amax(1) > -math.inf).nonzero()[:, 0]
                    log_value[incomplete] = -math.inf
                    cut, log_value[incomplete[open_]] = truncated_distribution(
                        decoding, log_weights[open_], incomplete[open_]
                    )
                    log_weights[open_] = cut
                else:
                    log_value[incomplete] = log_weights.logsumexp(1)
                require_support(log_probs[log_value[incomplete] == -math.inf])
                place[incomplete] = torch.arange(len(incomplete))
        rows = weighed.nonzero()[:, 0]
        if len(rows):
            log_value[rows] = verifier.log_values(rows)
        return ParticleValues(log_value, place, log_weights, log_values)

    def _draw(
        self,
        decoding: Decoding,
        prefixes: Tensor,
        rows: Tensor,
        outlook: ParticleValues,
        verifier: CachedVerifier,
        choose: Choose,
    ) -> tuple[Tensor, Tensor]:
        """Draw the next token of each row, which continues the sequence in `prefixes` (n,).

        Return the tokens (n,) and log(p / q) (n,), where p is the model's probability of the token and q the
        probability with which it was drawn.
        """
        if self.proposal == "mask":
            place = outlook.place[prefixes]
            token = choose(outlook.log_weights[place], rows)
            return token, outlook.log_value[prefixes] - outlook.log_values[place, token]
        log_probs = decoding.log_probs(prefixes)
        if self.proposal == "rejection":
            draw = draw_accepted(log_probs, prefixes, rows, verifier, choose)
            return draw.token, draw.log_mass
        return choose(log_probs, rows), torch.zeros(len(rows), dtype=torch.float64)

    def _draw_ancestors(self, log_weights: Tensor, rows: Tensor, choose: Choose) -> Tensor:
        """Draw the rows (groups, particles) from which the particles continue, in proportion to their weights."""
        n = self.particles
        if self.resampling == "multinomial":
            groups, own = torch.arange(len(rows)).repeat_interleave(n), rows.flatten()
            member = torch.empty_like(own)
            for part in torch.arange(len(own)).split(max(1, _ENTRIES // n)):
                member[part] = choose(log_weights[groups[part]], own[part])
            return member.view(-1, n)
        # Systematic resampling uses one uniform u in [0, 1): row j takes the member whose interval in [0, n) contains
        # j + u. The result depends only on the order of u among the fractional parts of the interval bounds, so u is
        # a choice among n.
        bounds = log_weights.softmax(1).cumsum(1)
        bounds = n * bounds / bounds[:, -1:]
        cuts = bounds[:, :-1].frac().sort(1).values
        cuts = torch.cat((cuts.new_zeros(len(cuts), 1), cuts, cuts.new_ones(len(cuts), 1)), 1)
        part = choose(cuts.diff(dim=1).log(), rows[:, 0])[:, None]
        u = (cuts.gather(1, part) + cuts.gather(1, part + 1)) / 2
        return torch.searchsorted(bounds, torch.arange(n) + u, right=True)


def _draw_output(log_weights: Tensor, rows: Tensor, choose: Choose) -> Tensor:
    """Draw the output of each group (groups, 1): one particle, in proportion to `log_weights` (groups, particles).

    The random stream of a group is the one of its first row in `rows` (groups, particles).
    """
    return choose(log_weights, rows[:, 0])[:, None]
