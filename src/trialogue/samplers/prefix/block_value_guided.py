"""Value-guided sampling on blocks of tokens, with sampled candidates instead of all children (VGB, Algorithm 3)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, GroupSize, Sampler
from trialogue.validation import validated


class BlockValueGuidedState(NamedTuple):
    """State of `BlockValueGuided`: the prefix from which each sample draws its next candidate blocks.

    All rows of a group (the rows of one sample) have the same state.

    Attributes:
        length: Length (rows,) int64 of this prefix, the current node of the walk.
        log_value: Logarithm (rows,) float64 of the verifier's value of this node. It is -inf if the node is the prompt,
            which has no parent, and before the value is computed.
    """

    length: Tensor
    log_value: Tensor


@validated
@dataclass(frozen=True)
class BlockValueGuided(Sampler[BlockValueGuidedState]):
    """Extend or shorten the text by random blocks of tokens, guided by the verifier, until it is complete.

    The sampler is a random walk on prefixes. A block is a run of `block_tokens` tokens. A node of the walk is the
    prompt followed by whole blocks, and a leaf is a complete sequence. At each node, the model draws several candidates
    for the next block. The walk then moves to one of the candidates, or back to the parent (the node without its last
    block).

    Let y be the current node and V(y) its value, given by the verifier. Let K = `candidates` be the number of
    candidates. The walk moves to the parent with weight K V(y), and to y followed by the candidate z with weight V(yz).
    In expectation these are the weights of the value-guided walk on blocks. If neither a candidate nor the parent has
    positive weight, new candidates are drawn.

    The target is proportional to p(x) V(x), where p is the model and x a complete sequence. As K grows, the output
    distribution converges to the distribution of the first leaf on the tree of blocks. This is the target if the values
    at the ends of blocks are exact, which means that each is the mean value of its completions. `exact_distribution`
    computes the output distribution for finite K. With blocks as long as completions, the algorithm is
    sampling-importance-resampling with K samples.

    The verifier evaluates each candidate at the end of its block. The tokens of all candidates count as model calls.

    Args:
        candidates: Number of candidate blocks per node (default: 4).
        block_tokens: Length of a block in tokens (default: 4).
    """

    candidates: GroupSize = 4
    block_tokens: BoundedCount = 4
    uses = "weights"

    @property
    def rows_per_sample(self) -> int:
        """Number of rows of the batch that belong to one sample, one row for each candidate."""
        return self.candidates

    def init(self, decoding: Decoding) -> BlockValueGuidedState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            A state whose node is the prompt, with log-value -inf.
        """
        unknown = torch.full((len(decoding.lengths),), -math.inf, dtype=torch.float64)
        return BlockValueGuidedState(decoding.lengths.clone(), unknown)

    def step(
        self, decoding: Decoding, state: BlockValueGuidedState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, BlockValueGuidedState]:
        """Append one token to each row whose block has not ended, and move samples whose candidate blocks have ended.

        Each sample has `candidates` neighbouring rows, its group, and each row draws one candidate block. When all
        blocks of a group have ended, the group moves: it draws one candidate, or the prefix without its last block (the
        parent). A candidate has its value as weight. The parent has the value of the current prefix times the number of
        candidates.

        All rows of the group then continue from the drawn prefix. If all weights are zero, they return to the current
        prefix and draw new candidates. A group that has moved to a complete sequence is marked as done in the next
        step.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: The current node of each row.
            verifier: Values of the nodes and of the candidates.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        n, moves, (length, log_value) = self.candidates, Moves.stay(decoding), state
        arrived = decoding.lengths == length
        moves.done.copy_(arrived & decoding.complete)
        inner = (arrived & ~moves.done & (length > decoding.start)).nonzero()[:, 0]
        if len(inner):
            log_value = log_value.index_copy(0, inner, verifier.log_values(inner))
        ended = decoding.complete | (decoding.lengths - length >= self.block_tokens)
        groups = (ended & ~moves.done).view(-1, n).all(1).nonzero()[:, 0]
        if len(groups):
            rows = groups[:, None] * n + torch.arange(n)
            first = rows[:, 0]
            values = verifier.log_values(rows.flatten()).view(-1, n)
            weights = torch.cat(((log_value[first] + math.log(n))[:, None], values), 1)
            index = torch.full_like(first, -1)
            open_ = (weights.amax(1) > -math.inf).nonzero()[:, 0]
            if len(open_):
                index[open_] = choose(weights[open_], first[open_])
            member = first + (index - 1).clamp_min(0)
            # The child, the parent, or the same node with new candidates.
            above = length[first] - torch.where(index == 0, self.block_tokens, 0)
            kept = torch.where(index > 0, decoding.lengths[member], above)
            moves.source[rows], moves.length[rows] = member[:, None], kept[:, None]
            length = length.index_copy(0, rows.flatten(), kept.repeat_interleave(n))
            log_value = log_value.index_fill(0, rows.flatten(), -math.inf)
        moves.append(decoding, (~ended & ~moves.done).nonzero()[:, 0], choose)
        return moves, BlockValueGuidedState(length, log_value)
