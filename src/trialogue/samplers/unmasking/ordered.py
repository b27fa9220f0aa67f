"""Samplers that select positions by an order and a size, before or after they draw tokens."""

from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.randomness import Choose
from trialogue.samplers.chains.subsets import choose_members
from trialogue.samplers.unmasking.contract import Canvas, Draw, Drawing, Plan, Planned, Unmasking, rounded
from trialogue.samplers.unmasking.orders import Confidence, Order, Random, Ties
from trialogue.samplers.unmasking.sizes import Block, Fixed, RandomSizes, Size
from trialogue.validation import Count, NonNegative, PositiveShare, validated


@validated
@dataclass(frozen=True)
class Ordered(Planned):
    """Select positions, then draw their tokens independently from the model's conditional distributions.

    Orders and sizes use the model's distributions without temperature and truncation. If the conditionals belong to a
    joint distribution, one position per pass samples from it exactly, in every order. Several positions per pass
    neglect the dependence between their tokens.

    Args:
        order: Order of the positions (default: `Random()`).
        size: Number of positions per pass (default: `Fixed(1)`).
        temperature: Divide the logits by this number before tokens are drawn. At 0, the most probable token is taken,
            the lowest token id in a tie (default: 1).
        top_p: Draw from the smallest set of most probable tokens whose total probability is at least `top_p`
            (default: no truncation).
        blocks: Reveal blocks of this many positions from left to right, each completely before the next
            (default: one block). The prompt does not count.

    Raises:
        InputError: If the size needs confidences, and the order is not `Confidence`.
    """

    order: Order = field(default_factory=Random)
    size: Size = field(default_factory=Fixed)
    temperature: NonNegative = 1.0
    top_p: PositiveShare | None = None
    blocks: Count | None = None

    def __post_init__(self) -> None:
        _require(self.order, Order, "order", "give an order, such as Random() or Confidence()")
        _require(self.size, Size, "size", "give a size, such as Fixed(2)")
        if self.size.needs_confidence and not isinstance(self.order, Confidence):
            hint = f"use the order Confidence(), because {type(self.size).__name__} selects by confidence"
            raise InputError("order", self.order, hint)

    def init(self, tokens: Tensor, masked: Tensor) -> Canvas:
        """Return the state before the first pass, given `tokens` and `masked` positions (rows, length)."""
        return _start(tokens, masked, self.size, self.blocks)

    @property
    def drawing(self) -> Drawing:
        """Temperature and truncation."""
        return Drawing(self.temperature, self.top_p or 1.0)

    @property
    def selects_independently(self) -> bool:
        """Whether each position is selected independently. A binomial number in random order is such a set."""
        return isinstance(self.order, Random) and isinstance(self.size, RandomSizes) and self.blocks is None

    def select(self, state: Canvas, conditionals: Tensor, choose: Choose) -> Tensor:
        """Return the positions that the next pass reveals.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.

        Returns:
            Positions (rows, length) bool.
        """
        scores = self.order.scores(conditionals)
        return _select(state, scores, self.size, self.order.ties, self.blocks, choose)

    def plan(self, state: Canvas, conditionals: Tensor, choose: Choose) -> Plan:
        """Select the positions that the next pass reveals, or return the probabilities of independent positions.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.

        Returns:
            The plan of the pass.
        """
        if self.selects_independently:
            share = cast(RandomSizes, self.size).share(state.passes)
            return Plan(torch.where(state.masked, share[:, None], 0.0), state.passes + 1)
        selected = self.select(state, conditionals, choose)
        return Plan(selected.double(), self.advance(state, state.tokens, selected).passes)

    def advance(self, state: Canvas, tokens: Tensor, selected: Tensor) -> Canvas:
        """Return the state after a pass that reveals `tokens` at `selected` positions, both (rows, length)."""
        return _advance(state, tokens, selected, self.size, self.blocks)


@validated
@dataclass(frozen=True)
class DrawThenSelect(Unmasking[Canvas]):
    """Draw tokens at all masked positions, then keep those that are most probable (low-confidence remasking of LLaDA).

    The probability of a drawn token is that of the model, without temperature and truncation. Improbable tokens are
    drawn again until they are probable, so no distribution is sampled exactly, even with one position per pass.

    Args:
        size: Number of positions per pass (default: `Fixed(1)`).
        temperature: Divide the logits by this number before tokens are drawn. At 0, the most probable token is taken,
            the lowest token id in a tie (default: 1).
        top_p: Draw from the smallest set of most probable tokens whose total probability is at least `top_p`
            (default: no truncation).
        blocks: Reveal blocks of this many positions from left to right, each completely before the next
            (default: one block). The prompt does not count.
        ties: Order of positions whose probabilities agree after rounding: the lowest position, "first" (default), or a
            uniformly random one, "random".
    """

    size: Size = field(default_factory=Fixed)
    temperature: NonNegative = 1.0
    top_p: PositiveShare | None = None
    blocks: Count | None = None
    ties: Ties = "first"

    def __post_init__(self) -> None:
        _require(self.size, Size, "size", "give a size, such as Fixed(2)")

    def init(self, tokens: Tensor, masked: Tensor) -> Canvas:
        """Return the state before the first pass, given `tokens` and `masked` positions (rows, length)."""
        return _start(tokens, masked, self.size, self.blocks)

    def step(self, state: Canvas, conditionals: Tensor, choose: Choose, draw: Draw = Drawing.draw) -> Canvas:
        """Draw all tokens of the current block, and reveal the most probable ones.

        Args:
            state: State before the pass.
            conditionals: Log-probabilities (rows, length, vocab) of the model.
            choose: Source of randomness.
            draw: Function that draws the tokens (default: independently).

        Returns:
            The state after the pass.
        """
        masked = state.masked & current_block(state, self.blocks)
        drawing = Drawing(self.temperature, self.top_p or 1.0)
        tokens = draw(drawing, state.tokens, masked, conditionals, choose)
        scores = rounded(conditionals.gather(2, tokens[:, :, None])[:, :, 0].exp())
        selected = _select(state, scores, self.size, self.ties, self.blocks, choose)
        return _advance(state, tokens, selected, self.size, self.blocks)


def _require(value: object, kind: type, name: str, hint: str) -> None:
    if not isinstance(value, kind):
        raise InputError(name, value, hint)


def _start(tokens: Tensor, masked: Tensor, size: Size, width: int | None) -> Canvas:
    """Return the canvas before the first pass.

    Blocks and some sizes depend on which positions belong to the prompt. Otherwise, all positions are marked as free,
    so that an enumeration merges canvases that differ only in this mark.
    """
    start = Canvas.start(tokens, masked)
    if width is None and size.uses_masked_only:
        return start._replace(free=torch.ones_like(masked))
    return start


def current_block(state: Canvas, width: int | None) -> Tensor:
    """Return the free positions (rows, length) of the first block that has masked positions."""
    if width is None:
        return state.free
    block = (state.free.cumsum(1) - 1) // width
    last = block.shape[1]
    return state.free & (block == block.masked_fill(~state.masked, last).amin(1, keepdim=True))


def _select(
    state: Canvas, scores: Tensor, size: Size, ties: Ties, width: int | None, choose: Choose
) -> Tensor:
    """Return the positions (rows, length) that are revealed: those of the current block with the highest scores."""
    block = current_block(state, width)
    masked = state.masked & block
    count = size.count(Block(scores, masked, block.sum(1), state.passes), choose)
    count = torch.minimum(count, masked.sum(1))
    scores = scores.double().masked_fill(~masked, -torch.inf)
    if ties == "first":
        ranks = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        return ranks < count[:, None]
    # Positions above the lowest selected score are certain, and the rest is drawn among positions with this score.
    lowest = scores.sort(dim=1, descending=True).values.gather(1, (count - 1).clamp_min(0)[:, None])
    certain = masked & (scores > lowest)
    certain = certain & (count > 0)[:, None]
    return certain | choose_members(masked & (scores == lowest), count - certain.sum(1), choose)


def _advance(state: Canvas, tokens: Tensor, selected: Tensor, size: Size, width: int | None) -> Canvas:
    """Return the state after `tokens` are revealed at `selected` positions, both (rows, length)."""
    after = state.reveal(tokens, selected)
    if not size.counts_passes:
        return after
    finished = ~(after.masked & current_block(state, width)).any(1)
    return after._replace(passes=(state.passes + 1).masked_fill(finished, 0))
