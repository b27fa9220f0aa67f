"""Rejection sampling of complete sequences (thesis Definition 3.1.4) and of tokens (Definition 3.1.5)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, NoState, Sampler
from trialogue.validation import Positive, validated


@dataclass(frozen=True)
class _SequenceRejection(Sampler[NoState]):
    """Base class of samplers that generate complete sequences until one is accepted."""

    is_exact = True
    judges = "outputs"

    def step(
        self, decoding: Decoding, state: NoState, verifier: CachedVerifier, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token to each row, after cutting complete rows that are rejected back to their prompts.

        A complete row that is accepted is marked as done. So is a prompt that is already complete, accepted
        or not.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: The empty state (this sampler stores nothing between steps).
            verifier: Values of the complete rows.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the empty state.
        """
        moves = Moves.stay(decoding)
        complete = decoding.complete.nonzero()[:, 0]
        if complete.numel():
            accepted = self._is_accepted(complete, verifier, choose)
            # A prompt that is already complete has no other completion.
            moves.done[complete] = accepted | (decoding.lengths[complete] == decoding.start[complete])
            moves.length[complete] = torch.where(accepted, moves.length[complete], decoding.start[complete])
        moves.append(decoding, (~moves.done).nonzero()[:, 0], choose)
        return moves, state

    @abstractmethod
    def _is_accepted(self, rows: Tensor, verifier: CachedVerifier, choose: Choose) -> Tensor:
        """Return whether each of the complete sequences with indices `rows` (n,) is accepted, as (n,) bool."""


@dataclass(frozen=True)
class Rejection(_SequenceRejection):
    """Draw complete sequences from the model until the verifier gives one a positive value (thesis Definition 3.1.4).

    The samples follow exactly the model's distribution conditioned on a positive value.
    """

    uses = "verdicts"

    def _is_accepted(self, rows: Tensor, verifier: CachedVerifier, choose: Choose) -> Tensor:
        del choose
        return verifier.values(rows) > 0


@validated
@dataclass(frozen=True)
class OutcomeRejection(_SequenceRejection):
    """Draw complete sequences from the model until one is accepted, with a probability proportional to its value.

    A sequence x is accepted with probability V(x) / `most`, where V is the verifier. The samples follow
    exactly the distribution proportional to p(x) V(x), where p is the model.

    Args:
        most: Largest value of a complete sequence; smaller bounds need fewer model calls. A larger value is
            an error (default: 1).
    """

    most: Positive = 1.0
    uses = "weights"

    def _is_accepted(self, rows: Tensor, verifier: CachedVerifier, choose: Choose) -> Tensor:
        values = verifier.values(rows) * verifier.log_targets(rows).exp()
        greatest = float(values.max())
        if greatest > self.most:
            hint = f"use at least {greatest:g}, the value of a complete sequence"
            raise InputError("most", self.most, hint)
        share = values / float(self.most)
        return choose(torch.stack((1 - share, share), 1).log(), rows) == 1


class TokenwiseRejectionState(NamedTuple):
    """State of `TokenwiseRejection` if its option `max_rejections` is set: counts of rejected tokens.

    Attributes:
        rejections: Number (rows,) int64 of consecutive rejected tokens at the current position of each row.
    """

    rejections: Tensor


@validated
@dataclass(frozen=True)
class TokenwiseRejection(Sampler[NoState | TokenwiseRejectionState]):
    """Draw each token repeatedly until the verifier accepts the sequence so far (thesis Definition 3.1.5).

    The model is called once per draw. `MaskedDecoding` with `mask_first=False` has the same output
    distribution and calls the model once per position. If every token is rejected, a run ends only with
    `max_queries`, `max_steps` or `max_rejections`. Top-k and top-p truncate the distribution before tokens
    are rejected.

    Args:
        max_rejections: A row fails after this many consecutive rejected draws at one position (default: no
            bound).

    Example:
        >>> from trialogue import generate
        >>> from trialogue.data import Table
        >>> from trialogue.samplers import TokenwiseRejection
        >>> table = Table([[0.5, 0.25], [0.0, 0.25]])  # Probabilities of the sequences of two tokens
        >>> samples = generate(table, sampler=TokenwiseRejection(), verifier=lambda x: x != (0, 0), num_samples=4)
        >>> samples.completions()
        [(0, 1), (0, 1), (0, 1), (0, 1)]
    """

    max_rejections: BoundedCount | None = None
    uses = "verdicts"

    @property
    def failure_reason(self) -> str:
        """Why a sample fails: `max_rejections` draws in succession were rejected at one position."""
        if self.max_rejections is None:
            return super().failure_reason
        return f"no token allowed in max_rejections={self.max_rejections} draws in a row at one position"

    def init(self, decoding: Decoding) -> NoState | TokenwiseRejectionState:
        """Return the initial sampler state of rows that contain only their prompts.

        Args:
            decoding: The batch of sequences (rows), each a prompt and the completion so far.

        Returns:
            Zero rejections for each row, or an empty state if `max_rejections` is not set.
        """
        return (
            NoState()
            if self.max_rejections is None
            else TokenwiseRejectionState(torch.zeros_like(decoding.lengths))
        )

    def step(
        self,
        decoding: Decoding,
        state: NoState | TokenwiseRejectionState,
        verifier: CachedVerifier,
        choose: Choose,
    ) -> tuple[Moves, NoState | TokenwiseRejectionState]:
        """Verify the last token of each row, remove it if it is rejected, and append a token drawn from the model.

        Prompts are not verified. A complete row that is accepted is marked as done. A row with `max_rejections`
        rejections in succession is also marked as done, and fails.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            state: Numbers of consecutive rejections, or an empty state if they are not bounded.
            verifier: Values of the rows. The value 0 rejects the last token.
            choose: Function that draws one index per row in proportion to given weights.

        Returns:
            How each row changes (`Moves`), and the new state.
        """
        moves = Moves.stay(decoding)
        judged = (decoding.lengths > decoding.start).nonzero()[:, 0]
        accepted = torch.ones_like(decoding.complete)
        if judged.numel():
            accepted[judged] = verifier.values(judged) > 0
        moves.length.sub_((~accepted).long())
        done = decoding.complete & accepted
        if isinstance(state, TokenwiseRejectionState) and self.max_rejections is not None:
            state = TokenwiseRejectionState(torch.where(accepted, 0, state.rejections + 1))
            done |= state.rejections >= self.max_rejections
        moves.append(decoding, (~done).nonzero()[:, 0], choose)
        return moves._replace(done=done), state
