"""Tokenwise rejection sampling with backtracking (thesis Algorithm 1)."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Self

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.errors import MOST_COUNTED, InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, Sampler, Uses
from trialogue.validation import validated

Redo = Literal["stride", "erased", "accumulated"]
Verified = Literal["sampled", "every"]


class BacktrackingState(NamedTuple):
    """What each row has left (rows,): backtracks, tokens to redo greedily, and whether its last was sampled.

    Where redone tokens accumulate, `redo` counts all that were erased. `rejected` (rows, quota, capacity) holds the
    prefixes at which a row went back, ended by -1, where it may do so only once at each; else it has no elements.
    """

    quota: Tensor
    redo: Tensor
    sampled: Tensor
    rejected: Tensor


@validated
@dataclass(frozen=True)
class Backtracking(Sampler[BacktrackingState]):
    """Where the verifier rejects a sampled token, erase the last `stride` tokens and append as many greedily.

    The greedy tokens are not verified, take the lowest index among ties, and end early at the end of sequence or at the
    longest length. The verifier must return 0 to reject: put a `Threshold` around one that returns probabilities.

    `redo` selects which tokens are greedy. "stride" is Algorithm 1 as printed: the `stride` tokens that follow, even if
    the prompt left fewer to erase. "erased" is only as many as were erased. "accumulated" is the first n positions of
    the completion, where n counts all tokens erased so far.

    `verified` selects which prefixes the verifier judges. "sampled" is Algorithm 1 as printed: prefixes that end in a
    sampled token. "every" is each prefix to which a token is about to be appended: also one that ends in a redone
    token, and a prompt that may be erased, but never a complete sequence.

    The code released with the thesis is not Algorithm 1 as printed but `redo="accumulated"` with `verified="every"`
    (`Backtracking.released`). It also has a switch against a second backtrack at a prefix, which compares a list with
    the list that holds it and so never acts; `once_per_prefix=True` does what the switch describes.

    Args:
        quota: Go back at most this many times per sample (default: 4).
        stride: Number of tokens to erase (default: 4).
        argmax_redo: Append tokens greedily after going back; False samples them instead (default: True).
        erase_prompt: Also erase tokens of the prompt, as the thesis' Tables 3.1, 3.2 and 3.4 need (default: False).
        redo: Which tokens are greedy after going back (default: stride).
        verified: Which prefixes the verifier judges (default: sampled).
        once_per_prefix: Go back at most once at the same prefix (default: False).
    """

    quota: Annotated[int, Interval(ge=0, le=MOST_COUNTED)] = 4
    stride: BoundedCount = 4
    argmax_redo: bool = True
    erase_prompt: bool = False
    redo: Redo = "stride"
    verified: Verified = "sampled"
    once_per_prefix: bool = False

    def __post_init__(self) -> None:
        if not self.argmax_redo and self.redo != "stride":
            raise InputError("redo", self.redo, "nothing is redone with argmax_redo=False: leave it out")

    @classmethod
    def released(
        cls, quota: int = 4, stride: int = 4, *, erase_prompt: bool = False, once_per_prefix: bool = False
    ) -> Self:
        """Return Algorithm 1 as implemented by the code released with the thesis."""
        return cls(
            quota,
            stride,
            erase_prompt=erase_prompt,
            redo="accumulated",
            verified="every",
            once_per_prefix=once_per_prefix,
        )

    @property
    def uses(self) -> Uses:
        """Without a quota the verifier is never called."""
        return "verdicts" if self.quota else "nothing"

    @property
    def keeps_prompts(self) -> bool:
        """Prompts are kept unless they may be erased."""
        return not self.erase_prompt

    def init(self, decoding: Decoding) -> BacktrackingState:
        """All of the quota, nothing to redo."""
        rows, capacity = decoding.tokens.shape
        remembered = (self.quota, capacity) if self.once_per_prefix else (0, 0)
        return BacktrackingState(
            torch.full((rows,), self.quota),
            torch.zeros(rows, dtype=torch.int64),
            torch.zeros(rows, dtype=torch.bool),
            torch.full((rows, *remembered), -1),
        )

    def step(
        self, decoding: Decoding, state: BacktrackingState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, BacktrackingState]:
        """Go back where the verifier rejects what is there, then append a greedy or a sampled token."""
        moves = Moves.stay(decoding)
        floor = torch.zeros_like(decoding.start) if self.erase_prompt else decoding.start
        every = self.verified == "every"
        asked = ~decoding.complete & (decoding.lengths > floor) if every else state.sampled
        rejected = torch.zeros_like(decoding.complete)
        judged = (asked & (state.quota > 0)).nonzero()[:, 0]
        if judged.numel():
            rejected[judged] = verifier.values(judged) == 0
        remembered = state.rejected
        if self.once_per_prefix:
            rejected, remembered = self._remembered(decoding, state, rejected)
        back = torch.maximum(decoding.lengths - self.stride, floor)
        moves.length.copy_(torch.where(rejected, back, decoding.lengths))
        redo, greedy = self._redone(decoding, state, rejected, moves.length)
        done = decoding.complete & ~rejected
        asking = (~done).nonzero()[:, 0]
        if asking.numel():
            log_probs = decoding.log_probs(asking, moves.length[asking])
            token = log_probs.argmax(1)
            drawn = (~greedy[asking]).nonzero()[:, 0]
            if drawn.numel():
                token[drawn] = choose(log_probs[drawn], asking[drawn])
            moves.token.index_copy_(0, asking, token)
        left = redo if self.redo == "accumulated" else (redo - 1).clamp_min(0)
        state = BacktrackingState(state.quota - rejected.long(), left, ~greedy, remembered)
        return moves._replace(done=done), state

    def _redone(
        self, decoding: Decoding, state: BacktrackingState, rejected: Tensor, kept: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The count of `BacktrackingState.redo` after going back, and which rows append a greedy token."""
        erased = decoding.lengths - kept
        if not self.argmax_redo:
            return torch.zeros_like(erased), torch.zeros_like(rejected)
        if self.redo == "accumulated":
            redo = state.redo + erased
            return redo, kept - decoding.start < redo
        due = erased if self.redo == "erased" else torch.full_like(erased, self.stride)
        redo = torch.where(rejected, due, state.redo)
        return redo, redo > 0

    def _remembered(
        self, decoding: Decoding, state: BacktrackingState, rejected: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Which of the `rejected` rows are at a prefix where they have not gone back, and all such prefixes then."""
        beyond = torch.arange(decoding.tokens.shape[1]) >= decoding.lengths[:, None]
        prefixes = decoding.tokens.masked_fill(beyond, -1)
        rejected = rejected & ~(state.rejected == prefixes[:, None]).all(2).any(1)
        rows, remembered = rejected.nonzero()[:, 0], state.rejected.clone()
        remembered[rows, self.quota - state.quota[rows]] = prefixes[rows]
        return rejected, remembered
