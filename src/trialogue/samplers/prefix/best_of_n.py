"""Best of n: complete n rows and keep the one that the verifier values most."""

from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import GroupSize, NoState, Sampler
from trialogue.validation import validated


@validated
@dataclass(frozen=True)
class BestOfN(Sampler[NoState]):
    """Draw several completions of each prompt and return the first of those with the greatest value.

    Args:
        candidates: Number of completions to draw (default: 4).
    """

    candidates: GroupSize = 4
    uses = "ranks"
    judges = "outputs"

    @property
    def rows_per_sample(self) -> int:
        """One row per candidate."""
        return self.candidates

    def step(
        self, decoding: Decoding, state: NoState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token to every incomplete row; select in the groups that are complete."""
        n, moves = self.candidates, Moves.stay(decoding)
        moves.append(decoding, decoding.growing, choose)
        finished = decoding.complete.view(-1, n).all(1).nonzero()[:, 0]
        if finished.numel():
            moves.done[keep_best(decoding, moves, finished, n, verifier)] = True
        return moves, state


def keep_best(decoding: Decoding, moves: Moves, groups: Tensor, n: int, verifier: Judge) -> Tensor:
    """Let the rows of `groups` (k,) of n rows continue from the first with the greatest value; return them (k, n)."""
    rows = groups[:, None] * n + torch.arange(n)
    best = verifier.values(rows.flatten()).view(-1, n).argmax(1)
    moves.source[rows] = rows.gather(1, best[:, None])
    moves.length[rows] = decoding.lengths[moves.source[rows]]
    return rows
