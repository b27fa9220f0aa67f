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
    choose_for,
    put,
    require_unmasking,
    select,
    where,
)
from trialogue.samplers.unmasking.ordered import Ordered
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
class Corrected(Unmasking[CorrectedState]):
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

    def step(self, state: CorrectedState, conditionals: Tensor, choose: Choose) -> CorrectedState:
        """Take a pass of the first sampler, or correct one position.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.

        Returns:
            The state after the pass.
        """
        size = state.free.sum(1)
        started = state.left < self.sweeps * size
        first, rest = (~started).nonzero()[:, 0], started.nonzero()[:, 0]
        inner, drawn = state.inner, state.tokens.clone()
        if len(first):
            part = self.sampler.step(select(inner, first), conditionals[first], choose_for(first, choose))
            inner = put(inner, first, part)
        if len(rest):
            drawn[rest] = _DRAWING.draw(
                state.tokens[rest], state.masked[rest], conditionals[rest], choose_for(rest, choose)
            )
        tokens = torch.where(started[:, None], drawn, inner.tokens)
        masked = inner.masked & ~started[:, None]
        ready = (started | self.sampler.finished(inner)) & (state.left > 0)
        # The positions of a sweep follow each other. After the last one, nothing is masked.
        following = (self.sweeps * size - state.left) % size.clamp_min(1)
        masked |= ready[:, None] & state.free & (state.free.cumsum(1) - 1 == following[:, None])
        tokens = tokens.masked_fill(masked, 0)
        inner = where(ready | started, self.sampler.init(tokens, masked), inner)
        return CorrectedState(tokens, masked, state.free, inner, state.left - ready.long())

    def finished(self, state: CorrectedState) -> Tensor:
        """Return which rows (rows,) bool of a state have made all corrections."""
        return (state.left == 0) & ~state.masked.any(1)
