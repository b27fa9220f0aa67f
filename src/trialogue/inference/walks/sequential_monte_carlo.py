"""Sequential Monte Carlo: weighted particles that follow the oracle, the verifier's values as twists."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import Moves
from trialogue.oracles import Decoding
from trialogue.randomness import Choose


class Particles(NamedTuple):
    """Per row (rows,): logarithm of the value at its last weighing, and its log-weight."""

    log_value: Tensor
    log_weight: Tensor


@dataclass(frozen=True)
class SequentialMonteCarlo:
    """`particles` rows per sample, weighted by V(new prefix)/V(old prefix), resampled when they degenerate.

    Multinomial resampling when the effective sample size falls below `ess_threshold` times the particles. The
    output is one particle drawn by weight; its `log_weight` is the logarithm of the mean weight, so that
    E[exp(log_weight) f(output)] = sum over complete x of p(x) V(x) f(x) for any f: properly weighted, provided that
    a prefix of value zero has no continuation of positive value.
    """

    particles: int = 8
    ess_threshold: float = 0.5
    needs_verifier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.particles < 1:
            raise InputError("particles", self.particles, "use at least 1 particle")
        if not 0 <= self.ess_threshold <= 1:
            raise InputError("ess_threshold", self.ess_threshold, "use a share of the particles, 0 to 1")

    @property
    def rows_per_sample(self) -> int:
        """One row per particle."""
        return self.particles

    def init(self, decoding: Decoding) -> Particles:
        """Weight one, value one at the prompt."""
        zeros = torch.zeros(len(decoding.lengths), dtype=torch.float64)
        return Particles(zeros, zeros.clone())

    def step(
        self, decoding: Decoding, state: Particles, verifier: Judge, choose: Choose
    ) -> tuple[Moves, Particles]:
        """Weigh the particles, resample the groups that need it, append one token to the living."""
        n, moves = self.particles, Moves.stay(decoding)
        log_value, log_weight = state.log_value.clone(), state.log_weight.clone()
        alive = log_weight > -math.inf
        weighed = (alive & (decoding.lengths > decoding.start)).nonzero()[:, 0]
        if len(weighed):
            log_value[weighed] = verifier.values(weighed).log()
            log_weight[weighed] += log_value[weighed] - state.log_value[weighed]
        weights = log_weight.view(-1, n)
        total = weights.logsumexp(1)
        extinct = total == -math.inf
        dead = weights == -math.inf
        finished = (decoding.complete.view(-1, n) | dead).all(1) & ~extinct
        log_ess = 2 * total - (2 * weights).logsumexp(1)
        resampled = ~extinct & (finished | (log_ess < math.log(max(self.ess_threshold * n, 1e-9))))
        groups = resampled.nonzero()[:, 0]
        if len(groups):
            rows = groups[:, None] * n + torch.arange(n)
            # A finished group needs one draw, its output; the others draw an ancestor for every row.
            drawing = (~finished[groups, None] | (torch.arange(n) == 0)).nonzero(as_tuple=True)
            ancestor = torch.zeros_like(rows)
            ancestor[drawing] = choose(weights[groups][drawing[0]], rows[drawing])
            ancestor = torch.where(finished[groups, None], ancestor[:, :1], ancestor)
            moves.source[rows] = groups[:, None] * n + ancestor
            moves.length.copy_(decoding.lengths[moves.source])
            # The engine gathers the state along the sources, so every member must hold the mean weight.
            log_weight.view(-1, n)[groups] = (total[groups] - math.log(n))[:, None].expand(-1, n)
        moves.done.copy_((extinct | finished).repeat_interleave(n))
        growing = ~moves.done & ~decoding.complete[moves.source] & (log_weight[moves.source] > -math.inf)
        asking = growing.nonzero()[:, 0]
        if len(asking):
            moves.token[asking] = choose(decoding.log_probs(moves.source[asking]), asking)
        return moves, Particles(log_value, log_weight)
