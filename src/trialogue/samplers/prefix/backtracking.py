"""Tokenwise rejection sampling with backtracking (thesis Algorithm 1)."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Self

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.errors import MOST_COUNTED, InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, Sampler, Uses
from trialogue.validation import validated

Redo = Literal["stride", "erased", "accumulated"]
Verified = Literal["sampled", "every"]


class BacktrackingState(NamedTuple):
    """State of `Backtracking`: how often each row may still erase tokens, and how many tokens it must still append.

    Greedy tokens are the most probable ones.

    Attributes:
        quota: Number (rows,) int64 of times that each row may still erase tokens.
        redo: Number (rows,) int64 of tokens that are still to be appended greedily. With redo="accumulated",
            the number of tokens erased so far.
        sampled: Whether the last token of each row (rows,) bool was sampled, and not chosen greedily. By
            default only such tokens are verified.
        rejected: With `once_per_prefix`, the prefixes (rows, quota, capacity) int64 at which each row has
            erased tokens, padded with -1. Otherwise a tensor without elements.
    """

    quota: Tensor
    redo: Tensor
    sampled: Tensor
    rejected: Tensor


@validated
@dataclass(frozen=True)
class Backtracking(Sampler[BacktrackingState]):
    """Erase the last `stride` tokens if the verifier rejects a sampled token, and append the same number greedily.

    Greedy tokens are the most probable ones. By default they are not verified. A sample may erase tokens
    `quota` times, so its output may still be rejected. The verifier must return 0 to reject a prefix. Wrap a
    verifier that returns probabilities in a `Threshold`.

    `redo` selects which tokens are greedy after tokens were erased. "stride" (Algorithm 1 of the thesis): the
    next `stride` tokens, even if fewer were erased because the completion was short. "erased": as many tokens
    as were erased. "accumulated": the first n tokens of the completion, where n counts all tokens erased so
    far.

    `verified` selects which prefixes are verified. "sampled" (Algorithm 1): those that end with a sampled
    token. "every": each prefix before a token is appended to it, including prompts if they may be erased.

    The code released with the thesis differs from Algorithm 1. It corresponds to `redo="accumulated"` and
    `verified="every"` (see `Backtracking.released`).

    Args:
        quota: Maximum number of backtracks per sample (default: 4).
        stride: Number of tokens to erase (default: 4).
        argmax_redo: Append tokens greedily after going back; False samples them instead (default: True).
        erase_prompt: Also erase tokens of the prompt, as the thesis' Tables 3.1, 3.2 and 3.4 need (default:
            False).
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
            raise InputError(
                "redo", self.redo, "leave it out with argmax_redo=False, which samples all tokens"
            )

    @classmethod
    def released(
        cls, quota: int = 4, stride: int = 4, *, erase_prompt: bool = False, once_per_prefix: bool = False
    ) -> Self:
        """Return a sampler that follows the code released with the thesis, which differs from Algorithm 1 as printed.

        Every prefix is verified before a token is appended to it (`verified="every"`). When n tokens have been erased
        in total, the first n tokens of the completion are greedy (`redo="accumulated"`).

        Args:
            quota: Maximum number of times that a sample may erase tokens (default: 4).
            stride: Number of tokens to erase each time (default: 4).
            erase_prompt: Whether tokens of the prompt may be erased (default: False).
            once_per_prefix: Whether to erase at most once at the same prefix (default: False).

        Returns:
            The sampler.
        """
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
        """How `step` uses verifier values: whether they are positive ("verdicts"), or not at all if `quota` is 0."""
        return "verdicts" if self.quota else "nothing"

    @property
    def keeps_prompts(self) -> bool:
        """Whether every sample begins with its prompt, which is False if tokens of the prompt may be erased."""
        return not self.erase_prompt

    def init(self, decoding: Decoding) -> BacktrackingState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            A state with the full quota of backtracks, no greedy tokens to append, and no rejected prefixes.
        """
        rows, capacity = decoding.tokens.shape
        remembered = (self.quota, capacity) if self.once_per_prefix else (0, 0)
        return BacktrackingState(
            torch.full((rows,), self.quota),
            torch.zeros(rows, dtype=torch.int64),
            torch.zeros(rows, dtype=torch.bool),
            torch.full((rows, *remembered), -1),
        )

    def step(
        self, decoding: Decoding, state: BacktrackingState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, BacktrackingState]:
        """Erase up to `stride` tokens from rows that the verifier rejects, then append a token to each incomplete row.

        After a rejection, the row appends the most probable tokens for some steps. All other tokens are drawn
        from the model. A row is verified only while it may still erase tokens, and by default only if its
        last token was sampled. A complete row that is not rejected is marked as done.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: For each row, the number of erasures left and the number of greedy tokens still to be
                appended.
            verifier: Values of the rows. The value 0 rejects a row.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        moves = Moves.stay(decoding)
        floor = torch.zeros_like(decoding.start) if self.erase_prompt else decoding.start
        every = self.verified == "every"
        to_verify = ~decoding.complete & (decoding.lengths > floor) if every else state.sampled
        rejected = torch.zeros_like(decoding.complete)
        judged = (to_verify & (state.quota > 0)).nonzero()[:, 0]
        if judged.numel():
            rejected[judged] = verifier.values(judged) == 0
        remembered = state.rejected
        if self.once_per_prefix:
            rejected, remembered = self._find_new_rejections(decoding, state, rejected)
        back = torch.maximum(decoding.lengths - self.stride, floor)
        moves.length.copy_(torch.where(rejected, back, decoding.lengths))
        redo, greedy = self._update_redo(decoding, state, rejected, moves.length)
        done = decoding.complete & ~rejected
        unfinished = (~done).nonzero()[:, 0]
        if unfinished.numel():
            log_probs = decoding.log_probs(unfinished, moves.length[unfinished])
            token = log_probs.argmax(1)
            drawn = (~greedy[unfinished]).nonzero()[:, 0]
            if drawn.numel():
                token[drawn] = choose(log_probs[drawn], unfinished[drawn])
            moves.token.index_copy_(0, unfinished, token)
        left = redo if self.redo == "accumulated" else (redo - 1).clamp_min(0)
        state = BacktrackingState(state.quota - rejected.long(), left, ~greedy, remembered)
        return moves._replace(done=done), state

    def _update_redo(
        self, decoding: Decoding, state: BacktrackingState, rejected: Tensor, kept: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Update how many greedy tokens each row must still append after a backtrack.

        Returns the new field `redo` (rows,) of the state, and whether each row (rows,) appends a greedy token now.
        """
        erased = decoding.lengths - kept
        if not self.argmax_redo:
            return torch.zeros_like(erased), torch.zeros_like(rejected)
        if self.redo == "accumulated":
            redo = state.redo + erased
            return redo, kept - decoding.start < redo
        due = erased if self.redo == "erased" else torch.full_like(erased, self.stride)
        redo = torch.where(rejected, due, state.redo)
        return redo, redo > 0

    def _find_new_rejections(
        self, decoding: Decoding, state: BacktrackingState, rejected: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Find the rejected rows that have not backtracked at their current prefix before.

        Returns these rows (rows,) bool, and the field `rejected` of the state with their prefixes added.
        """
        beyond = torch.arange(decoding.tokens.shape[1]) >= decoding.lengths[:, None]
        prefixes = decoding.tokens.masked_fill(beyond, -1)
        rejected = rejected & ~(state.rejected == prefixes[:, None]).all(2).any(1)
        rows, remembered = rejected.nonzero()[:, 0], state.rejected.clone()
        remembered[rows, self.quota - state.quota[rows]] = prefixes[rows]
        return rejected, remembered
