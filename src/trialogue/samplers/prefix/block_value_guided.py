"""Value-guided samplers by blocks of tokens, with sampled candidates in place of all children (VGB, Algorithm 3)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import counter
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import Moves
from trialogue.samplers.prefix.sampler import Sampler


class Stand(NamedTuple):
    """Length (rows,) of the node that a row's group stands at, and the logarithm (rows,) of its value: -inf at root."""

    length: Tensor
    log_value: Tensor


@dataclass(frozen=True)
class BlockValueGuided(Sampler[Stand]):
    """Sampler on the tree of blocks of `block_tokens` tokens, and return the first leaf.

    At a node y the oracle draws K = `candidates` blocks z; the sampler goes up a block with weight K V(y), or down to
    yz with weight V(yz). These are the weights of the value-guided sampler on blocks in expectation, without listing
    its children; where no candidate and no parent has weight, others are drawn. What it samples tends, as K grows, to
    the distribution of the first leaf on the tree of blocks, which is the restricted distribution where the values at
    the ends of blocks are exact; at a finite K it is another one, which `exact_distribution` tells. With blocks as long
    as completions it is sampling-importance-resampling among K. Every candidate's tokens are queries; the verifier is
    asked for the value of each at the end of its block, or where that completes it.
    """

    candidates: int = 4
    block_tokens: int = 4
    uses = "weights"

    def __post_init__(self) -> None:
        counter("candidates", self.candidates, 1)
        counter("block_tokens", self.block_tokens, 1)

    @property
    def rows_per_sample(self) -> int:
        """One row per candidate."""
        return self.candidates

    def init(self, decoding: Decoding) -> Stand:
        """At the root."""
        unknown = torch.full((len(decoding.lengths),), -math.inf, dtype=torch.float64)
        return Stand(decoding.lengths.clone(), unknown)

    def step(self, decoding: Decoding, state: Stand, verifier: Judge, choose: Choose) -> tuple[Moves, Stand]:
        """Move the groups whose candidates have all ended, and append a token to the candidates that have not."""
        n, moves, (length, log_value) = self.candidates, Moves.stay(decoding), state
        arrived = decoding.lengths == length
        moves.done.copy_(arrived & decoding.complete)
        inner = (arrived & ~moves.done & (length > decoding.start)).nonzero()[:, 0]
        if len(inner):
            log_value = log_value.index_copy(0, inner, verifier.values(inner).log())
        ended = decoding.complete | (decoding.lengths - length >= self.block_tokens)
        groups = (ended & ~moves.done).view(-1, n).all(1).nonzero()[:, 0]
        if len(groups):
            rows = groups[:, None] * n + torch.arange(n)
            first = rows[:, 0]
            values = verifier.values(rows.flatten()).view(-1, n).log()
            weights = torch.cat(((log_value[first] + math.log(n))[:, None], values), 1)
            index = torch.full_like(first, -1)
            open_ = (weights.amax(1) > -math.inf).nonzero()[:, 0]
            if len(open_):
                index[open_] = choose(weights[open_], first[open_])
            member = first + (index - 1).clamp_min(0)
            # The node below, the node above, or the same one, for other candidates.
            above = length[first] - torch.where(index == 0, self.block_tokens, 0)
            kept = torch.where(index > 0, decoding.lengths[member], above)
            moves.source[rows], moves.length[rows] = member[:, None], kept[:, None]
            length = length.index_copy(0, rows.flatten(), kept.repeat_interleave(n))
            log_value = log_value.index_fill(0, rows.flatten(), -math.inf)
        growing = (~ended & ~moves.done).nonzero()[:, 0]
        if len(growing):
            moves.token[growing] = choose(decoding.log_probs(growing), growing)
        return moves, Stand(length, log_value)
