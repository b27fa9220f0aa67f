"""Numbers of positions that are revealed in one pass."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from trialogue.randomness import Choose
from trialogue.validation import Count, Positive, PositiveShare, validated

_ROUNDING = 1e-9


class Block(NamedTuple):
    """The part of a sequence that is revealed next: the current block, or the whole sequence.

    Attributes:
        scores: Scores (rows, length) of all positions. They are confidences if the size requires it.
        masked: Which positions of the block are masked, (rows, length) bool.
        total: Number (rows,) of positions of the block that were masked at the start.
        passes: Number (rows,) of passes since the block began, if the size counts them.
    """

    scores: Tensor
    masked: Tensor
    total: Tensor
    passes: Tensor


class Size(ABC):
    """Base class of sizes. A size is the number of positions of a block that one pass reveals."""

    counts_passes: ClassVar[bool] = False
    """Whether the size depends on the number of passes since the block began."""
    needs_confidence: ClassVar[bool] = False
    """Whether the scores must be probabilities of tokens."""
    uses_masked_only: ClassVar[bool] = False
    """Whether the size does not depend on `Block.total` and on the scores of revealed positions. The exact distribution
    then has fewer states."""

    @abstractmethod
    def count(self, block: Block, choose: Choose) -> Tensor:
        """Return how many masked positions are revealed.

        Args:
            block: The current block of each row. Rows without masked positions are ignored.
            choose: Source of randomness.

        Returns:
            Numbers (rows,) int64. More than the number of masked positions means all of them.
        """


@validated
@dataclass(frozen=True)
class Fixed(Size):
    """Reveal the same number of positions in each pass.

    Args:
        positions: Number of positions (default: 1).
    """

    positions: Count = 1
    uses_masked_only: ClassVar[bool] = True

    def count(self, block: Block, choose: Choose) -> Tensor:
        """Return the number of positions (rows,) for a `block`. The random `choose` is not used."""
        del choose
        return torch.full_like(block.total, self.positions)


@validated
@dataclass(frozen=True)
class Schedule(Size):
    """Reveal each block in a given number of passes.

    At least one position is revealed in each pass. A block of fewer positions than passes takes fewer passes.

    Args:
        shape: "linear" reveals equally many positions in each pass, the remainder in the first passes (LLaDA).
            "cosine" keeps a share cos(pi t / 2) of the positions masked after a share t of the passes, so that the
            first passes reveal few positions (MaskGIT) (default: linear).
        passes: Number of passes (default: 8).
    """

    shape: Literal["linear", "cosine"] = "linear"
    passes: Count = 8
    counts_passes: ClassVar[bool] = True

    def count(self, block: Block, choose: Choose) -> Tensor:
        """Return the number of positions (rows,) for a `block`. The random `choose` is not used."""
        del choose
        if self.shape == "linear":
            count = block.total // self.passes + (block.passes < block.total % self.passes)
        else:
            time = (block.passes + 1).double() / self.passes
            kept = (block.total * torch.cos(time.clamp(max=1) * math.pi / 2) + _ROUNDING).floor().long()
            count = block.masked.sum(1) - kept
        return count.clamp_min(1)


@validated
@dataclass(frozen=True)
class Threshold(Size):
    """Reveal all positions whose confidence reaches a threshold, and at least one (Fast-dLLM, arXiv 2505.22618).

    The confidence is the highest probability at a position, or the probability of its drawn token in `DrawThenSelect`.

    Args:
        confidence: The threshold (default: 0.9).
    """

    confidence: PositiveShare = 0.9
    needs_confidence: ClassVar[bool] = True
    uses_masked_only: ClassVar[bool] = True

    def count(self, block: Block, choose: Choose) -> Tensor:
        """Return the number of positions (rows,) for a `block`. The random `choose` is not used."""
        del choose
        reached = block.scores >= self.confidence - _ROUNDING
        return (reached & block.masked).sum(1).clamp_min(1)


@validated
@dataclass(frozen=True)
class Factor(Size):
    """Reveal the n most confident positions, for the largest n with (n + 1) (1 - c_n) <= factor, and at least one.

    Here c_n is the n-th highest confidence (Fast-dLLM, arXiv 2505.22618).

    Args:
        factor: Bound of the sum of the probabilities of other tokens (default: 1).
    """

    factor: Positive = 1.0
    needs_confidence: ClassVar[bool] = True
    uses_masked_only: ClassVar[bool] = True

    def count(self, block: Block, choose: Choose) -> Tensor:
        """Return the number of positions (rows,) for a `block`. The random `choose` is not used."""
        del choose
        scores = block.scores.masked_fill(~block.masked, -torch.inf).sort(1, descending=True).values
        after = torch.arange(scores.shape[1], device=scores.device) + 2
        return (after * (1 - scores) <= self.factor + _ROUNDING).sum(1).clamp_min(1)


@validated
@dataclass(frozen=True)
class RandomSizes(Size):
    """Reveal a random number of positions, as if each position were assigned to a uniformly random pass.

    In pass t of T, the number has a binomial distribution with probability 1 / (T - t + 1). With random order, this is
    ancestral sampling of masked diffusion (MDLM) with a linear noise schedule. A pass may reveal nothing.

    Args:
        passes: Number T of passes (default: 8).
    """

    passes: Count = 8
    counts_passes: ClassVar[bool] = True
    uses_masked_only: ClassVar[bool] = True

    def share(self, passes: Tensor) -> Tensor:
        """Return the probability (rows,) float64 that a masked position is revealed after `passes` (rows,) passes."""
        return 1 / (self.passes - passes).clamp_min(1).double()

    def count(self, block: Block, choose: Choose) -> Tensor:
        """Draw the number of positions (rows,) for a `block` with `choose`."""
        rows = block.masked.any(1).nonzero()[:, 0]
        masked = block.masked.sum(1)[rows, None].double()
        number = torch.arange(block.masked.shape[1] + 1, device=rows.device).double()
        share = self.share(block.passes[rows, None])
        log_weights = (
            -torch.lgamma(number + 1)
            - torch.lgamma((masked - number).clamp_min(0) + 1)
            + torch.xlogy(number, share)
            + torch.xlogy((masked - number).clamp_min(0), 1 - share)
        ).masked_fill(number > masked, -torch.inf)
        count = torch.zeros_like(block.total)
        count[rows] = choose(log_weights, rows)
        return count
