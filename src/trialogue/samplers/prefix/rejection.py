"""Rejection sampling of sequences (thesis Definition 3.1.4) and of tokens (Definition 3.1.5)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import BoundedCount, NoState, Sampler
from trialogue.validation import Positive, validated


@dataclass(frozen=True)
class _SequenceRejection(Sampler[NoState]):
    """Base class of samplers that draw complete sequences until one is accepted."""

    judges = "outputs"

    def step(
        self, decoding: Decoding, state: NoState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token, after returning rejected complete rows to their prompts."""
        moves = Moves.stay(decoding)
        complete = decoding.complete.nonzero()[:, 0]
        if complete.numel():
            accepted = self._accepted(complete, verifier.values(complete), choose)
            # A prompt that is already complete has no other completion.
            moves.done[complete] = accepted | (decoding.lengths[complete] == decoding.start[complete])
            moves.length[complete] = torch.where(accepted, moves.length[complete], decoding.start[complete])
        moves.append(decoding, (~moves.done).nonzero()[:, 0], choose)
        return moves, state

    @abstractmethod
    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        """Return which (n,) of the complete `rows` (n,) with `values` (n,) are accepted."""


@dataclass(frozen=True)
class Rejection(_SequenceRejection):
    """Draw complete sequences until one is accepted. The samples follow the restricted distribution exactly."""

    uses = "verdicts"

    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        del rows, choose
        return values > 0


@validated
@dataclass(frozen=True)
class OutcomeRejection(_SequenceRejection):
    """Draw complete sequences x until one is accepted, each with probability V(x) / `most`.

    The samples follow the normalised p(x) V(x) exactly. With 0/1 values it equals `Rejection`.

    Args:
        most: Largest value of a complete sequence; smaller bounds need fewer model calls. A larger value is an error
            (default: 1).
    """

    most: Positive = 1.0
    uses = "weights"

    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        greatest = float(values.max())
        if greatest > self.most:
            hint = f"use at least {greatest:g}, the value of a complete sequence"
            raise InputError("most", self.most, hint)
        share = values / float(self.most)
        return choose(torch.stack((1 - share, share), 1).log(), rows) == 1


class Rejected(NamedTuple):
    """Number (rows,) int64 of consecutive rejected draws at the current position of each row."""

    rejections: Tensor


@validated
@dataclass(frozen=True)
class TokenwiseRejection(Sampler[NoState | Rejected]):
    """Draw each token until the verifier accepts the resulting prefix (thesis Definition 3.1.5).

    The oracle is called once per draw, as in the definition. `MaskedDecoding` has the same output distribution and
    calls the oracle once per position. A run does not end by itself at a position where every token is rejected, so use
    `max_queries`, `max_steps` or `max_rejections` to bound it. Top-k and top-p truncate the distribution before tokens
    are rejected.

    Args:
        max_rejections: A row fails after this many consecutive rejected draws at one position (default: no bound).
    """

    max_rejections: BoundedCount | None = None
    uses = "verdicts"

    @property
    def failure_reason(self) -> str:
        """The number of rejected draws, if it is bounded."""
        if self.max_rejections is None:
            return super().failure_reason
        return f"no token allowed in max_rejections={self.max_rejections} draws in a row at one position"

    def init(self, decoding: Decoding) -> NoState | Rejected:
        """Return the state without rejections, or an empty state if they are not bounded."""
        return NoState() if self.max_rejections is None else Rejected(torch.zeros_like(decoding.lengths))

    def step(
        self, decoding: Decoding, state: NoState | Rejected, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState | Rejected]:
        """Append one token, after removing the last token if it was rejected."""
        moves = Moves.stay(decoding)
        judged = (decoding.lengths > decoding.start).nonzero()[:, 0]
        accepted = torch.ones_like(decoding.complete)
        if judged.numel():
            accepted[judged] = verifier.values(judged) > 0
        moves.length.sub_((~accepted).long())
        done = decoding.complete & accepted
        if isinstance(state, Rejected) and self.max_rejections is not None:
            state = Rejected(torch.where(accepted, 0, state.rejections + 1))
            done |= state.rejections >= self.max_rejections
        moves.append(decoding, (~done).nonzero()[:, 0], choose)
        return moves._replace(done=done), state
