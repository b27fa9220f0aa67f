"""Sudoku of 4 x 4 cells: a puzzle and its solution, where one is easy to make from the other, and the other is not.

A solution is one of the 288 grids, uniformly; the puzzle keeps `clues` of its 16 cells, chosen uniformly, and blanks
the others. Cells are written row by row: token 0 is a blank, tokens 1 to 4 are digits. Solution first, a cell of the
puzzle is kept or blanked. Puzzle first, every clue must leave a solution, and an oracle without memory counts the
grids that fit.

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
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Natural, validated

Order = Literal["puzzle-first", "solution-first"]
CELLS = 16


@cache
def sudoku_grids() -> NDArray[np.int64]:
    """All solved grids (288, 16) int64, in lexicographic order; read only."""
    beginnings: list[Prefix] = [()]
    for _ in range(CELLS):
        beginnings = [(*grid, digit) for grid in beginnings for digit in allowed_digits(grid)]
    grids = np.array(beginnings, dtype=np.int64)
    grids.flags.writeable = False
    return grids


def allowed_digits(grid: Prefix) -> list[int]:
    """The digits that the next cell may hold beside those written, by its row, column and box."""
    row, column = divmod(len(grid), 4)
    seen = {
        digit
        for place, digit in enumerate(grid)
        if place // 4 == row
        or place % 4 == column
        or (place // 4 // 2, place % 4 // 2) == (row // 2, column // 2)
    }
    return [digit for digit in range(1, 5) if digit not in seen]


def dead_end_probability() -> float:
    """How often cells filled in one by one, uniformly with what is allowed beside those before, come to a dead end."""
    reached: dict[Prefix, float] = {(): 1.0}
    for _ in range(CELLS):
        after: dict[Prefix, float] = {}
        for grid, probability in reached.items():
            digits = allowed_digits(grid)
            after |= {(*grid, digit): probability / len(digits) for digit in digits}
        reached = after
    return 1 - sum(reached.values())


class SudokuPuzzles(WeightedPrefixes):
    """The law of a puzzle of `clues` clues and the solution it was made from, in either order: 32 tokens.

    As an oracle it counts grids; `looked_up` says how many cells it has looked at for it. Raises `InputError` for an
    unknown order, more than 16 clues, and, where all is listed, more than `ENUMERABLE_STATES` pairs.
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
        """Number of pairs of a solution and a choice of its clues, which are equally likely."""
        return len(sudoku_grids()) * comb(CELLS, self.clues)

    def states(self) -> Tensor:
        """All sequences (size, 32) int64."""
        self._require_listable()
        kept = np.zeros((comb(CELLS, self.clues), CELLS), dtype=bool)
        for row, cells in zip(kept, combinations(range(CELLS), self.clues), strict=True):
            row[list(cells)] = True
        grids = sudoku_grids()
        return self._written(np.repeat(grids, len(kept), axis=0), np.tile(kept, (len(grids), 1)))

    def probabilities(self) -> Tensor:
        """Probabilities (size,) float64 of `states`: all equal."""
        self._require_listable()
        return torch.full((self.size,), 1 / self.size, dtype=torch.float64)

    def _require_listable(self) -> None:
        if self.size > ENUMERABLE_STATES:
            hint = f"there are {self.size} puzzles, too many to list (at most {ENUMERABLE_STATES}): use 4 clues or 12"
            raise InputError("clues", self.clues, hint)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Draw sequences (n, 32) int64, solutions and then their clues; number i depends on `seed` and i alone."""
        rows = torch.arange(n)
        streams = Streams(seed_of(seed, "sudoku"), rows)
        grids = sudoku_grids()[(streams.uniform(rows) * len(sudoku_grids())).long().numpy()]
        # The cells of the smallest of 16 random numbers are any cells.
        ranks = torch.stack([streams.uniform(rows) for _ in range(CELLS)], 1).argsort(1).argsort(1)
        return self._written(grids, (ranks < self.clues).numpy())

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Weights (5,) of the next cell: how many pairs of a grid and its clues go on with it."""
        puzzle, solution = prefix[:CELLS], prefix[CELLS:]
        if self.order == "solution-first":
            puzzle, solution = solution, puzzle
        if self.order == "puzzle-first" and len(puzzle) < CELLS:
            return self._clue_weights(puzzle, ())
        if self.order == "solution-first" and len(solution) == CELLS:
            return self._clue_weights(puzzle, solution)
        if len(solution) == CELLS or (puzzle and sum(digit > 0 for digit in puzzle) != self.clues):
            return [0.0] * 5
        grids = self._fitting(puzzle, solution)
        counts: list[float] = np.bincount(grids[:, len(solution)], minlength=5).astype(float).tolist()
        return counts

    def _clue_weights(self, puzzle: Prefix, solution: Prefix) -> list[float]:
        """Weights of a blank and of each digit in the next cell of the puzzle."""
        left = self.clues - sum(digit > 0 for digit in puzzle)
        cells = CELLS - len(puzzle) - 1
        if left < 0 or cells < 0:
            return [0.0] * 5
        grids = self._fitting(puzzle, solution)
        counts = np.bincount(grids[:, len(puzzle)], minlength=5)
        weights = (counts * (comb(cells, left - 1) if left else 0)).astype(float)
        weights[0] = len(grids) * comb(cells, left)
        answer: list[float] = weights.tolist()
        return answer

    def _fitting(self, puzzle: Prefix, solution: Prefix) -> NDArray[np.int64]:
        """The grids that hold the clues of `puzzle` and begin with `solution`."""
        grids = sudoku_grids()
        clues = [(cell, digit) for cell, digit in enumerate(puzzle) if digit] + list(enumerate(solution))
        for cell, digit in clues:
            self.looked_up += len(grids)
            grids = grids[grids[:, cell] == digit]
        return grids

    def _written(self, grids: NDArray[np.int64], kept: NDArray[np.bool_]) -> Tensor:
        parts = [np.where(kept, grids, 0), grids]
        return torch.from_numpy(np.concatenate(parts if self.order == "puzzle-first" else parts[::-1], 1))
