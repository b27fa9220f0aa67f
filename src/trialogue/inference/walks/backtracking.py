"""Tokenwise rejection sampling with backtracking (thesis Algorithm 1)."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import truth_value, whole_number
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.walk import Uses, Walk
from trialogue.oracles import Decoding
from trialogue.randomness import Choose


class BacktrackingState(NamedTuple):
    """What each row has left (rows,): backtracks, tokens to redo greedily, and whether its last was sampled."""

    quota: Tensor
    redo: Tensor
    sampled: Tensor


@dataclass(frozen=True)
class Backtracking(Walk[BacktrackingState]):
    """Where the verifier rejects a sampled token, erase the last `stride` tokens, then append `stride` greedily.

    At most `quota` times per sample. The greedy redo is not verified, takes the lowest index among ties, and ends
    early at the end of sequence or at the horizon. As printed, it appends `stride` tokens also where the prompt left
    fewer to erase; `redo_erased_only=True` appends only as many as were erased. `argmax_redo=False` is the ablation
    that samples on instead.
    `erase_prompt` allows the erasing to reach into the prompt, as the thesis' Tables 3.1, 3.2 and 3.4 need.
    The verifier must say 0 to reject: put a `Threshold` around one that gives probabilities.
    """

    quota: int = 4
    stride: int = 4
    argmax_redo: bool = True
    erase_prompt: bool = False
    redo_erased_only: bool = False

    def __post_init__(self) -> None:
        whole_number("quota", self.quota, 0, mend="use 0 or more backtracks, a whole number")
        whole_number("stride", self.stride, 1, mend="erase at least 1 token, a whole number")
        for flag in ("argmax_redo", "erase_prompt", "redo_erased_only"):
            truth_value(flag, getattr(self, flag))

    @property
    def uses(self) -> Uses:
        """Without a quota the verifier is never asked."""
        return "verdicts" if self.quota else "nothing"

    @property
    def keeps_prompts(self) -> bool:
        """Unless it may erase them."""
        return not self.erase_prompt

    def init(self, decoding: Decoding) -> BacktrackingState:
        """All of the quota, nothing to redo."""
        rows = len(decoding.lengths)
        return BacktrackingState(
            torch.full((rows,), self.quota),
            torch.zeros(rows, dtype=torch.int64),
            torch.zeros(rows, dtype=torch.bool),
        )

    def step(
        self, decoding: Decoding, state: BacktrackingState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, BacktrackingState]:
        """Go back where the last sampled token was rejected, then append a greedy or a sampled token."""
        moves = Moves.stay(decoding)
        rejected = torch.zeros_like(decoding.complete)
        judged = (state.sampled & (state.quota > 0)).nonzero()[:, 0]
        if judged.numel():
            rejected[judged] = verifier.values(judged) == 0
        floor = torch.zeros_like(decoding.start) if self.erase_prompt else decoding.start
        back = torch.maximum(decoding.lengths - self.stride, floor)
        moves.length.copy_(torch.where(rejected, back, decoding.lengths))
        due = decoding.lengths - back if self.redo_erased_only else torch.full_like(back, self.stride)
        redo = torch.where(rejected, due if self.argmax_redo else torch.zeros_like(due), state.redo)
        done = decoding.complete & ~rejected
        greedy = redo > 0
        asking = (~done).nonzero()[:, 0]
        if asking.numel():
            log_probs = decoding.log_probs(asking, moves.length[asking])
            token = log_probs.argmax(1)
            drawn = (~greedy[asking]).nonzero()[:, 0]
            if drawn.numel():
                token[drawn] = choose(log_probs[drawn], asking[drawn])
            moves.token.index_copy_(0, asking, token)
        state = BacktrackingState(state.quota - rejected.long(), (redo - 1).clamp_min(0), ~greedy)
        return moves._replace(done=done), state
