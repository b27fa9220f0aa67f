"""Orders in which positions are revealed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.samplers.unmasking.compiled_scores import score_rows, write_margins, write_negative_entropies
from trialogue.samplers.unmasking.contract import rounded
from trialogue.validation import Different, Natural, validated

Ties = Literal["first", "random"]
"""Which of several positions with equal scores comes first: the lowest one, or a uniformly random one."""


class Order(ABC):
    """Base class of orders. Among the masked positions, those with the highest scores are revealed first."""

    ties: Ties = "first"
    """Which of several positions with equal scores comes first (default: the lowest one)."""

    @abstractmethod
    def scores(self, conditionals: Tensor) -> Tensor:
        """Return the score of each position.

        Args:
            conditionals: Log-probabilities (rows, length, vocab) of the model.

        Returns:
            Scores (rows, length).
        """


@dataclass(frozen=True)
class LeftToRight(Order):
    """Reveal the first masked positions."""

    def scores(self, conditionals: Tensor) -> Tensor:
        """Return minus the index of each position, (rows, length), given `conditionals` (rows, length, vocab)."""
        rows, length, _ = conditionals.shape
        return -torch.arange(length, device=conditionals.device).expand(rows, -1)


@validated
@dataclass(frozen=True)
class Permutation(Order):
    """Reveal positions in a given order.

    Args:
        positions: All positions of the sequence, in the order in which they are revealed.

    Raises:
        InputError: If a position occurs twice. At a pass, if the sequence has other positions.
    """

    positions: Different[Natural]

    def scores(self, conditionals: Tensor) -> Tensor:
        """Return minus the rank of each position, (rows, length), given `conditionals` (rows, length, vocab)."""
        rows, length, _ = conditionals.shape
        if sorted(self.positions) != list(range(length)):
            raise InputError("positions", self.positions, f"give the positions 0 to {length - 1}, each once")
        return -torch.tensor(self.positions, device=conditionals.device).argsort().expand(rows, -1)


@dataclass(frozen=True)
class Random(Order):
    """Reveal uniformly random masked positions."""

    ties = "random"

    def scores(self, conditionals: Tensor) -> Tensor:
        """Return zeros (rows, length), given `conditionals` (rows, length, vocab)."""
        return torch.zeros_like(conditionals[:, :, 0])


@validated
@dataclass(frozen=True)
class Confidence(Order):
    """Reveal the positions whose most probable token has the highest probability.

    Args:
        ties: Order of positions whose scores agree after rounding: the lowest position, "first" (default), or a
            uniformly random one, "random".
    """

    ties: Ties = "first"

    def scores(self, conditionals: Tensor) -> Tensor:
        """Return the highest probability at each position, (rows, length), given `conditionals`."""
        return rounded(conditionals.amax(2).exp())


@validated
@dataclass(frozen=True)
class Entropy(Order):
    """Reveal the positions whose distributions have the lowest entropy.

    Args:
        ties: Order of positions whose scores agree after rounding: the lowest position, "first" (default), or a
            uniformly random one, "random".
    """

    ties: Ties = "first"

    def scores(self, conditionals: Tensor) -> Tensor:
        """Return minus the entropy in nats at each position, (rows, length), given `conditionals`."""
        if _is_compiled(conditionals):
            return rounded(score_rows(write_negative_entropies, conditionals))
        # Bounded logarithms avoid the product of 0 and infinity.
        return rounded((conditionals.exp() * conditionals.clamp_min(-1e9)).sum(2))


@validated
@dataclass(frozen=True)
class Margin(Order):
    """Reveal the positions at which the two most probable tokens differ most in probability.

    Args:
        ties: Order of positions whose scores agree after rounding: the lowest position, "first" (default), or a
            uniformly random one, "random".
    """

    ties: Ties = "first"

    def scores(self, conditionals: Tensor) -> Tensor:
        """Return the difference of the two highest probabilities, (rows, length), given `conditionals`."""
        if _is_compiled(conditionals):
            return rounded(score_rows(write_margins, conditionals))
        largest = conditionals.topk(min(2, conditionals.shape[2])).values.exp()
        return rounded(largest[:, :, 0] - largest[:, :, 1:].sum(2))


def _is_compiled(conditionals: Tensor) -> bool:
    """Return whether scores are computed by compiled functions: in single precision on the CPU."""
    return conditionals.dtype == torch.float32 and conditionals.device.type == "cpu"
