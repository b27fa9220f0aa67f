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
    """State of `BlockValueGuided`: length and value of the current prefix of each sample.

    The sampler samples candidates for the block of tokens after this prefix. Each candidate has its own row, and all
    rows of a sample have the same state.

    Attributes:
        length: Length (rows,) int64 of the current prefix.
        log_value: Logarithm (rows,) float64 of the verifier's value of the current prefix. It is -inf at the prompt,
            from which the sampler cannot go back, and before the value is computed.
    """

    length: Tensor
    log_value: Tensor


@validated
@dataclass(frozen=True)
class BlockValueGuided(Sampler[BlockValueGuidedState]):
    """Extend the text by a random block of tokens, or remove the last block, guided by the verifier's values.

    At each prefix y, the model draws K = `candidates` candidates for the next block of `block_tokens` tokens.
    The sampler then extends y by the candidate z with weight V(yz), or removes the last block of y with
    weight K V(y), where V is the verifier. If all weights are zero, new candidates are drawn. It ends at the
    first complete sequence.

    The target is proportional to p(x) V(x), where p is the model and x a complete sequence. The output
    distribution is the target if K is large and V(y) is the mean value of the completions of y.
    `exact_distribution` computes it for any K. The verifier evaluates each candidate at the end of its block.
    The tokens of all candidates count as model calls.

    Args:
        candidates: Number of candidate blocks after each prefix (default: 4).
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
            A state whose current prefix is the prompt, with log-value -inf.
        """
        unknown = torch.full((len(decoding.lengths),), -math.inf, dtype=torch.float64)
        return BlockValueGuidedState(decoding.lengths.clone(), unknown)

    def step(
        self, decoding: Decoding, state: BlockValueGuidedState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, BlockValueGuidedState]:
        """Append one token to each candidate block that has not ended, and choose among the candidates that have ended.

        The `candidates` neighboring rows of one sample each draw one block after the same prefix. When all
        blocks have ended, the next prefix is drawn: a candidate with its value as weight, or the prefix
        without its last block, with the value of the prefix times the number of candidates as weight. If all
        weights are zero, the prefix stays the same. All rows continue from the drawn prefix. A sample at a
        complete sequence is marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: The current prefix of each row.
            verifier: Values of the prefixes and of the candidates.
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
