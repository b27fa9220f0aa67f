"""Moves from states before a stage of an unmasking sampler to states after it."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from trialogue.samplers.unmasking.contract import select


class Moves(NamedTuple):
    """Moves with their probabilities. Several moves may lead to the same state.

    Attributes:
        rows: Row (n,) of the state from which each move starts.
        weights: Probability (n,) of each move.
        states: States (m rows) after the stage.
        origins: Row (m,) of a state before the stage from which a move leads to each of `states`.
        places: Index (n,) in `states` of the state to which each move leads.
    """

    rows: Any
    weights: Any
    states: Any
    origins: Any
    places: Any

    def of_rows(self, rows: Any) -> Self:
        """Return the moves of a selection of rows, given the index of each row before the selection."""
        return self._replace(rows=rows[self.rows], origins=rows[self.origins])

    def to(self, chosen: Any) -> Self:
        """Return the moves to the `chosen` states (m,) bool."""
        kept, index = chosen[self.places], chosen.cumsum() - 1
        return self._replace(
            rows=self.rows[kept],
            weights=self.weights[kept],
            states=select(self.states, torch.from_numpy(chosen)),
            origins=self.origins[chosen],
            places=index[self.places[kept]],
        )

    def weighted(self, factors: Any) -> Self:
        """Return the moves with the weights multiplied by a factor (rows,) for each row, or unchanged for None."""
        return self if factors is None else self._replace(weights=self.weights * factors[self.rows])


Outcomes = Iterator[Moves]
"""All moves of a stage, in several parts."""


def one_each(rows: Any, weights: Any, states: Any) -> Moves:
    """Return moves with one state for each move, given the row, the weight and the state (n each)."""
    return Moves(rows, weights, states, rows, np.arange(len(rows)))
