"""Samplers that mask some of their tokens again."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.randomness import Choose
from trialogue.samplers.unmasking.contract import (
    Canvas,
    Drawing,
    Plan,
    Planned,
    Unmasking,
    require_unmasking,
    where,
)
from trialogue.samplers.unmasking.ordered import Ordered
from trialogue.samplers.unmasking.stages import Stage, Staged, WrappedStage, stages_of
from trialogue.validation import Count, NonNegative, PositiveShare, Share, validated


@validated
@dataclass(frozen=True)
class ReMDM(Planned):
    """Reveal and mask positions independently (remasking diffusion, ReMDM, arXiv 2503.00307).

    With T passes and a linear schedule, a share a = t / T of the positions is revealed before pass t = 0, 1, ..., and
    b = (t + 1) / T after it. The pass masks each revealed position with probability s, and reveals each masked position
    with probability (b - (1 - s) a) / (1 - a). The largest possible s is min(1, (1 - b) / a), which is 0 in the last
    pass. The prompt is never masked.

    The code of the paper removes the token that crosses `top_p`, and takes the most probable tokens in an additional
    last pass. Here, truncation keeps the crossing token, as elsewhere in the package, and all tokens are drawn.

    The variant ReMDM-conf is not available. Its probability of masking a token depends on the token's probability when
    it was drawn, which the state would have to contain, so that equal canvases would not be equal states.

    Args:
        passes: Number T of passes (default: 8).
        eta: Strength of the remasking. At 0, this is ancestral sampling of masked diffusion (default: 0.02).
        schedule: "cap" masks with probability min(eta, largest), and "rescale" with eta times the largest probability
            (default: cap).
        temperature: Divide the logits by this number before tokens are drawn. At 0, the most probable token is taken
            (default: 1).
        top_p: Draw from the smallest set of most probable tokens whose total probability is at least `top_p`
            (default: no truncation).
    """

    passes: Count = 8
    eta: Share = 0.02
    schedule: Literal["cap", "rescale"] = "cap"
    temperature: NonNegative = 1.0
    top_p: PositiveShare | None = None

    @property
    def drawing(self) -> Drawing:
        """Temperature and truncation."""
        return Drawing(self.temperature, self.top_p or 1.0)

    def plan(self, state: Canvas, conditionals: Tensor, choose: Choose) -> Plan:
        """Return the probabilities with which positions are revealed and masked, which depend on the pass only.

        Args:
            state: State before the pass.
            conditionals: Not used.
            choose: Not used.

        Returns:
            The plan of the pass.
        """
        del conditionals, choose
        before = state.passes.double() / self.passes
        after = (state.passes + 1).double() / self.passes
        largest = torch.where(before > 0, (1 - after) / before, 1.0).clamp(max=1)
        masking = largest.clamp(max=self.eta) if self.schedule == "cap" else self.eta * largest
        revealing = (after - (1 - masking) * before) / (1 - before)
        changing = torch.where(state.masked, revealing[:, None], masking[:, None]) * state.free
        return Plan(changing, state.passes + 1)

    def finished(self, state: Canvas) -> Tensor:
        """Return which rows (rows,) bool of a state have taken all passes."""
        return (state.passes >= self.passes) | ~state.free.any(1)


_DRAWING = Drawing(temperature=1.0, top_p=1.0)


class CorrectedState(NamedTuple):
    """State of `Corrected`.

    Attributes:
        tokens: Token ids (rows, length) int64, 0 at masked positions.
        masked: Masked positions (rows, length) bool.
        free: Positions (rows, length) bool that do not belong to the prompt.
        inner: State of the first sampler, reset when it has finished.
        left: Number (rows,) int64 of corrections that have not been made.
    """

    tokens: Tensor
    masked: Tensor
    free: Tensor
    inner: Any
    left: Tensor


@validated
@dataclass(frozen=True)
class Corrected(Staged[CorrectedState]):
    """Run a sampler, then draw each position again given all others, from left to right (sweeps of Gibbs sampling).

    A correction masks one position in one pass and draws it in the next. If the conditionals belong to a joint
    distribution, sweeps never move a distribution away from it.

    Args:
        sampler: The first sampler (default: `Ordered()`).
        sweeps: Number of sweeps over the positions outside of the prompt (default: 1).
    """

    sampler: Unmasking[Any] = field(default_factory=Ordered)
    sweeps: Count = 1

    def __post_init__(self) -> None:
        require_unmasking(self.sampler)

    def init(self, tokens: Tensor, masked: Tensor) -> CorrectedState:
        """Return the state before the first pass, given `tokens` and `masked` positions (rows, length)."""
        inner = self.sampler.init(tokens, masked)
        return CorrectedState(inner.tokens, masked, masked, inner, self.sweeps * masked.sum(1))

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of the first sampler with the draws of positions, and the choice of the next position."""
        first, *rest = stages_of(self.sampler)
        return (
            WrappedStage(first, self._runs_first, self._draw),
            *(WrappedStage(stage, self._runs_first) for stage in rest),
            self._follow,
        )

    def _runs_first(self, state: CorrectedState) -> Tensor:
        """Return the rows (rows,) bool whose first sampler has not finished."""
        return state.left == self.sweeps * state.free.sum(1)

    def _draw(self, state: CorrectedState, conditionals: Tensor, choose: Choose) -> CorrectedState:
        """Draw the masked position."""
        tokens = _DRAWING.draw(state.tokens, state.masked, conditionals, choose)
        return state._replace(tokens=tokens, masked=torch.zeros_like(state.masked))

    def _follow(self, state: CorrectedState, conditionals: Tensor, choose: Choose) -> CorrectedState:
        """Mask the next position of complete texts."""
        del conditionals, choose
        size, started = state.free.sum(1), ~self._runs_first(state)
        ready = (started | self.sampler.finished(state.inner)) & (state.left > 0)
        # The positions of a sweep follow each other. After the last one, nothing is masked.
        following = (self.sweeps * size - state.left) % size.clamp_min(1)
        next_one = state.free & (state.free.cumsum(1) - 1 == following[:, None])
        masked = state.masked | ready[:, None] & next_one
        tokens = state.tokens.masked_fill(masked, 0)
        inner = where(ready | started, self.sampler.init(tokens, masked), state.inner)
        return CorrectedState(tokens, masked, state.free, inner, state.left - ready.long())

    def finished(self, state: CorrectedState) -> Tensor:
        """Return which rows (rows,) bool of a state have made all corrections."""
        return (state.left == 0) & ~state.masked.any(1)
