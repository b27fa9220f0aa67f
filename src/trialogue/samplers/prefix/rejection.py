"""Rejection sampling (thesis Definition 3.1.4), also by values, and tokenwise rejection (Definition 3.1.5)."""

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
class _Redrawing(Sampler[NoState]):
    """Draw whole completions until one is accepted."""

    judges = "outputs"

    def step(
        self, decoding: Decoding, state: NoState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState]:
        """Append one token; start again from the prompt where a complete row was rejected."""
        moves = Moves.stay(decoding)
        complete = decoding.complete.nonzero()[:, 0]
        if complete.numel():
            accepted = self._accepted(complete, verifier.values(complete), choose)
            # A prompt that is complete as it stands has no other completion.
            moves.done[complete] = accepted | (decoding.lengths[complete] == decoding.start[complete])
            moves.length[complete] = torch.where(accepted, moves.length[complete], decoding.start[complete])
        moves.append(decoding, (~moves.done).nonzero()[:, 0], choose)
        return moves, state

    @abstractmethod
    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        """Which (n,) of the complete `rows` (n,) are accepted, by their `values` (n,)."""


@dataclass(frozen=True)
class Rejection(_Redrawing):
    """Draw whole completions until the verifier accepts one: exactly the oracle's restricted distribution."""

    uses = "verdicts"

    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        del rows, choose
        return values > 0


@validated
@dataclass(frozen=True)
class OutcomeRejection(_Redrawing):
    """Draw whole completions x until one is accepted, with probability V(x) / `most`: exactly p(x) V(x), normalised.

    With 0/1 values this is `Rejection`.

    Args:
        most: The greatest value of a complete sequence; a closer bound needs fewer model calls. A greater value is an
            error (default: 1).
    """

    most: Positive = 1.0
    uses = "weights"

    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        greatest = float(values.max())
        if greatest > self.most:
            raise InputError(
                "most", self.most, f"a complete sequence has the value {greatest:g}: allow as much"
            )
        share = values / float(self.most)
        return choose(torch.stack((1 - share, share), 1).log(), rows) == 1


class Rejected(NamedTuple):
    """How many draws in a row (rows,) int64 were rejected where each row stands."""

    rejections: Tensor


@validated
@dataclass(frozen=True)
class TokenwiseRejection(Sampler[NoState | Rejected]):
    """Draw each token until the verifier accepts the prefix that it makes (thesis Definition 3.1.5).

    The oracle is called once per draw, as the definition counts. `MaskedDecoding` has the same distribution of outputs
    and calls the oracle once per position. A position at which every token is rejected is never left, so runs are
    bounded by `max_queries` or `max_steps`, and by `max_rejections`. Top-k and top-p cut the distribution before tokens
    are rejected.

    Args:
        max_rejections: A row fails after this many rejected draws in a row at one position (default: no bound).
    """

    max_rejections: BoundedCount | None = None
    uses = "verdicts"

    @property
    def failure_reason(self) -> str:
        """The bound on rejected draws, if there is one."""
        if self.max_rejections is None:
            return super().failure_reason
        return f"no token allowed in max_rejections={self.max_rejections} draws in a row at one position"

    def init(self, decoding: Decoding) -> NoState | Rejected:
        """Start without rejections if these are bounded."""
        return NoState() if self.max_rejections is None else Rejected(torch.zeros_like(decoding.lengths))

    def step(
        self, decoding: Decoding, state: NoState | Rejected, verifier: Judge, choose: Choose
    ) -> tuple[Moves, NoState | Rejected]:
        """Append one token, in place of the last one if that was rejected."""
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
