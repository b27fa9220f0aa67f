"""Rejection sampling (thesis Definition 3.1.4), by values too, and tokenwise rejection (Definition 3.1.5)."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, counter, one_of, positive_number, truth_value
from trialogue.oracles import Decoding
from trialogue.randomness import Choose
from trialogue.samplers.prefix.judge import Judge
from trialogue.samplers.prefix.moves import Moves
from trialogue.samplers.prefix.sampler import (
    NoState,
    Sampler,
    cut_law,
    log_mass,
    log_values_as_given,
    masked,
    require_support,
)


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
        asking = (~moves.done).nonzero()[:, 0]
        if asking.numel():
            moves.token.index_copy_(
                0, asking, choose(decoding.log_probs(asking, moves.length[asking]), asking)
            )
        return moves, state

    @abstractmethod
    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        """Which (n,) of the complete `rows` (n,) are accepted, by their `values` (n,)."""


@dataclass(frozen=True)
class Rejection(_Redrawing):
    """Draw whole completions until the verifier accepts one: exactly the oracle's distribution restricted to the
    rule.
    """

    uses = "verdicts"

    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        del rows, choose
        return values > 0


@dataclass(frozen=True)
class OutcomeRejection(_Redrawing):
    """Draw whole completions x until one is accepted, with probability V(x) / `most`: exactly p(x) V(x), normalised.

    `most` is the greatest value that a complete sequence can have: the fewer queries, the less it exceeds that. With
    0/1 values it is `Rejection`. Raises `InputError` where a value is above `most`.
    """

    most: float = 1.0
    uses = "weights"

    def __post_init__(self) -> None:
        positive_number("most", self.most)

    def _accepted(self, rows: Tensor, values: Tensor, choose: Choose) -> Tensor:
        greatest = float(values.max())
        if greatest > self.most:
            raise InputError(
                "most", self.most, f"a complete sequence has the value {greatest:g}: allow as much"
            )
        share = values / float(self.most)
        return choose(torch.stack((1 - share, share), 1).log(), rows) == 1


class AcceptedMass(NamedTuple):
    """Logarithm of the product of the oracle's mass on accepted tokens (rows,): target over proposal."""

    log_weight: Tensor


class Rejected(NamedTuple):
    """How many draws in a row (rows,) int64 were rejected where each row stands."""

    rejections: Tensor


TokenwiseState = NoState | AcceptedMass | Rejected


@dataclass(frozen=True)
class TokenwiseRejection(Sampler[TokenwiseState]):
    """Draw each token until the verifier accepts the prefix it makes.

    `method="redraw"` asks the oracle once per draw, as the definition counts; `method="mask"` asks once per
    position, and the verifier for all children: the same distribution of outputs, and the log-weight of each sample
    with respect to the restricted distribution. With a mask a row none of whose children is accepted fails; redrawing
    there never halts, so runs are bounded by `max_queries` or `max_steps`, and by `max_rejections`: a row that many of
    whose draws were rejected at one position fails.

    A mask does not commute with top-k and top-p. With `mask_first`, as constrained decoding is run, the mask comes
    first: what they keep of p_T V is drawn from, p_T the distribution at temperature T, and the log-weight is that of
    the mass kept, so that E[exp(log_weight) 1(x)] = p_T(x) on every accepted x that the cut can reach. At temperature 0
    the likeliest accepted token is taken, and p_T is the distribution without temperature. Otherwise the distribution
    is cut first, as redrawing cuts it: then the mask has the distribution of redrawing, and fails wherever what is kept
    is rejected.
    """

    method: Literal["redraw", "mask"] = "redraw"
    mask_first: bool = True
    max_rejections: int | None = None
    uses = "verdicts"

    def __post_init__(self) -> None:
        one_of("method", self.method, ("redraw", "mask"), "use 'redraw' or 'mask'")
        truth_value("mask_first", self.mask_first)
        if self.max_rejections is not None:
            counter("max_rejections", self.max_rejections, 1)
            if self.method == "mask":
                hint = "a mask rejects nothing that was drawn: leave it out, or use method='redraw'"
                raise InputError("max_rejections", self.max_rejections, hint)

    @property
    def masks_first(self) -> bool:
        """With a mask, unless that comes last."""
        return self.method == "mask" and self.mask_first

    @property
    def weighted(self) -> bool:
        """With a mask the accepted mass is known."""
        return self.method == "mask"

    @property
    def goes_back(self) -> bool:
        """With a mask no token is drawn that is not kept."""
        return self.method != "mask"

    @property
    def failure(self) -> str:
        """With `max_rejections`, that so many draws were rejected."""
        if self.max_rejections is None:
            return ""
        return f"max_rejections={self.max_rejections} draws in a row were rejected at one position"

    def init(self, decoding: Decoding) -> TokenwiseState:
        """Start with weight one where the method knows the weight, and without rejections where these are bounded."""
        if self.weighted:
            return AcceptedMass(torch.zeros(len(decoding.lengths), dtype=torch.float64))
        return NoState() if self.max_rejections is None else Rejected(torch.zeros_like(decoding.lengths))

    def step(
        self, decoding: Decoding, state: TokenwiseState, verifier: Judge, choose: Choose
    ) -> tuple[Moves, TokenwiseState]:
        """Append one token, in place of the last one where that was rejected."""
        if isinstance(state, AcceptedMass):
            return self._mask(decoding, state, verifier, choose)
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
        asking = (~done).nonzero()[:, 0]
        if asking.numel():
            moves.token.index_copy_(
                0, asking, choose(decoding.log_probs(asking, moves.length[asking]), asking)
            )
        return moves._replace(done=done), state

    def _mask(
        self, decoding: Decoding, state: AcceptedMass, verifier: Judge, choose: Choose
    ) -> tuple[Moves, AcceptedMass]:
        moves = Moves.stay(decoding)
        moves.done.copy_(decoding.complete)
        refused = log_values_as_given(decoding, verifier) == -math.inf
        log_weight = state.log_weight.masked_fill(refused, -math.inf)
        asking = decoding.growing
        if not asking.numel():
            return moves, AcceptedMass(log_weight)
        log_probs = decoding.log_probs(asking, cut=not self.mask_first)
        if self.mask_first:
            accepted = verifier.leading_children(asking, log_probs, verdicts=True).bool()
        else:
            accepted = verifier.children(asking, log_probs > -math.inf).bool()
        allowed = masked(log_probs, accepted)
        open_ = allowed.amax(1) > -math.inf
        require_support(log_probs[~open_])
        moves.done[asking[~open_]] = True
        log_weight = log_weight.index_fill(0, asking[~open_], -math.inf)
        if not bool(open_.all()):
            asking, allowed = asking[open_], allowed[open_]
        if asking.numel():
            if self.mask_first:
                distribution, mass = cut_law(decoding, allowed, asking)
            else:
                distribution = allowed.log_softmax(1)
                mass = log_mass(allowed, distribution)
            moves.token[asking] = choose(distribution, asking)
            log_weight = log_weight.index_add(0, asking, mass)
        return moves, AcceptedMass(log_weight)
