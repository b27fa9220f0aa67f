"""Sudoku puzzles of 4 x 4 cells with their solutions, as sequences of tokens.

The solution is uniform among the 288 solved grids, and the puzzle shows the digits of `clues` random cells.
Cells are written row by row. Token 0 is a blank, and tokens 1 to 4 are digits. Writing the solution first is
easy. Writing the puzzle first is hard, because the clues must be consistent with a solution that is not
written yet.

Source: "Theoretical Limitations of Autoregressive Models", section "Where this comes up".
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from math import comb
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Interval
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data.enumerable import ENUMERABLE_STATES
from trialogue.data.puzzles.weighted_prefixes import Prefix, WeightedPrefixes
from trialogue.errors import InputError
from trialogue.randomness import Streams, derive_seed
from trialogue.validation import Natural, validated

Order = Literal["puzzle-first", "solution-first"]
CELLS = 16


@cache
def sudoku_grids() -> NDArray[np.int64]:
    """Return all solved 4 x 4 grids in lexicographic order.

    Returns:
        Digits 1 to 4 as a read-only array (288, 16) int64, with cells row by row.
    """
    beginnings: list[Prefix] = [()]
    for _ in range(CELLS):
        beginnings = [(*grid, digit) for grid in beginnings for digit in allowed_digits(grid)]
    grids = np.array(beginnings, dtype=np.int64)
    grids.flags.writeable = False
    return grids


def allowed_digits(grid: Prefix) -> list[int]:
    """Return the digits that do not occur yet in the row, column and box of the next cell.

    Args:
        grid: Digits of the cells before it, row by row.

    Returns:
        Allowed digits in ascending order.
    """
    row, column = divmod(len(grid), 4)
    seen = {
        digit
        for cell, digit in enumerate(grid)
        if cell // 4 == row
        or cell % 4 == column
        or (cell // 4 // 2, cell % 4 // 2) == (row // 2, column // 2)
    }
    return [digit for digit in range(1, 5) if digit not in seen]


def dead_end_probability() -> float:
    """Return the probability that a random fill of the 4 x 4 grid reaches a cell without an allowed digit.

    Cells are filled row by row, each with a uniformly random digit among the allowed ones.
    """
    reached: dict[Prefix, float] = {(): 1.0}
    for _ in range(CELLS):
        after: dict[Prefix, float] = {}
        for grid, probability in reached.items():
            digits = allowed_digits(grid)
            after |= {(*grid, digit): probability / len(digits) for digit in digits}
        reached = after
    return 1 - sum(reached.values())


class SudokuPuzzles(WeightedPrefixes):
    """Distribution of 4 x 4 Sudoku puzzles with their solutions, in either order.

    A sequence has 32 tokens. Token 0 is a blank, and tokens 1 to 4 are digits. A clue is a cell of the puzzle that is
    not blank. The solution is uniform among all grids, and the cells of the clues are uniformly random. The oracle
    counts the grids that match a prefix.

    Args:
        clues: Number of clues, from 0 to 16.
        order: Whether a sequence starts with the puzzle, "puzzle-first" (default), or the solution, "solution-first".

    Attributes:
        looked_up: Number of cells that the oracle has read so far.

    Raises:
        InputError: If the order is unknown. `states` and `probabilities` raise it for more than `ENUMERABLE_STATES`
            pairs of a puzzle and a solution.
    """

    vocab_size = 5
    max_length: int = 2 * CELLS

    @validated
    def __init__(
        self, clues: Annotated[int, Interval(ge=0, le=CELLS)] = 6, order: Order = "puzzle-first"
    ) -> None:
        self.clues, self.order = clues, order
        self.looked_up = 0

    @property
    def size(self) -> int:
        """Number of pairs of a solution and the cells whose digits are given (clues), all equally likely."""
        return len(sudoku_grids()) * comb(CELLS, self.clues)

    def states(self) -> Tensor:
        """Return all sequences, one per pair of a solution and a choice of the cells of the clues.

        Returns:
            Tokens (size, 32) int64.
        """
        self._require_listable()
        is_clue = np.zeros((comb(CELLS, self.clues), CELLS), dtype=bool)
        for row, cells in zip(is_clue, combinations(range(CELLS), self.clues), strict=True):
            row[list(cells)] = True
        grids = sudoku_grids()
        return self._encode(np.repeat(grids, len(is_clue), axis=0), np.tile(is_clue, (len(grids), 1)))

    def probabilities(self) -> Tensor:
        """Return the probabilities (size,) float64 of `states`, which are all equal."""
        self._require_listable()
        return torch.full((self.size,), 1 / self.size, dtype=torch.float64)

    def _require_listable(self) -> None:
        if self.size > ENUMERABLE_STATES:
            hint = f"use 4 or 12 clues, because {self.size} puzzles are too many to list (at most {ENUMERABLE_STATES})"
            raise InputError("clues", self.clues, hint)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Sample independent sequences.

        Args:
            n: Number of sequences.
            seed: Random seed (default: 0). Sequence i depends on the seed and on i only.

        Returns:
            Tokens (n, 32) int64.
        """
        rows = torch.arange(n)
        streams = Streams(derive_seed(seed, "sudoku"), rows)
        grids = sudoku_grids()[(streams.uniform(rows) * len(sudoku_grids())).long().numpy()]
        # The cells with the smallest of 16 random numbers are a uniformly random subset.
        ranks = torch.stack([streams.uniform(rows) for _ in range(CELLS)], 1).argsort(1).argsort(1)
        return self._encode(grids, (ranks < self.clues).numpy())

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Count the pairs of a solution and a choice of clue cells that continue `prefix` with each token.

        Args:
            prefix: Previous tokens.

        Returns:
            Weights (5,), the unnormalized probabilities of a blank and of the digits 1 to 4. All are 0 if no sequence
            continues the prefix.
        """
        puzzle, solution = prefix[:CELLS], prefix[CELLS:]
        if self.order == "solution-first":
            puzzle, solution = solution, puzzle
        if self.order == "puzzle-first" and len(puzzle) < CELLS:
            return self._clue_weights(puzzle, ())
        if self.order == "solution-first" and len(solution) == CELLS:
            return self._clue_weights(puzzle, solution)
        if len(solution) == CELLS or (puzzle and sum(digit > 0 for digit in puzzle) != self.clues):
            return [0.0] * 5
        grids = self._matching_grids(puzzle, solution)
        counts: list[float] = np.bincount(grids[:, len(solution)], minlength=5).astype(float).tolist()
        return counts

    def _clue_weights(self, puzzle: Prefix, solution: Prefix) -> list[float]:
        """Return the weights of a blank and of each digit in the next cell of the puzzle."""
        remaining = self.clues - sum(digit > 0 for digit in puzzle)
        cells = CELLS - len(puzzle) - 1
        if remaining < 0 or cells < 0:
            return [0.0] * 5
        grids = self._matching_grids(puzzle, solution)
        counts = np.bincount(grids[:, len(puzzle)], minlength=5)
        weights = (counts * (comb(cells, remaining - 1) if remaining else 0)).astype(float)
        weights[0] = len(grids) * comb(cells, remaining)
        result: list[float] = weights.tolist()
        return result

    def _matching_grids(self, puzzle: Prefix, solution: Prefix) -> NDArray[np.int64]:
        """Return the grids that contain the clues of `puzzle` and start with `solution`."""
        grids = sudoku_grids()
        clues = [(cell, digit) for cell, digit in enumerate(puzzle) if digit] + list(enumerate(solution))
        for cell, digit in clues:
            self.looked_up += len(grids)
            grids = grids[grids[:, cell] == digit]
        return grids

    def _encode(self, grids: NDArray[np.int64], is_clue: NDArray[np.bool_]) -> Tensor:
        parts = [np.where(is_clue, grids, 0), grids]
        return torch.from_numpy(np.concatenate(parts if self.order == "puzzle-first" else parts[::-1], 1))
