"""Compare the distribution of small Sudoku puzzles in both orders with enumeration, and count reads."""

from collections import Counter
from itertools import permutations, product

import pytest
import torch

from one_line_errors import refusals
from trialogue.data.puzzles.sudoku import SudokuPuzzles, allowed_digits, dead_end_probability, sudoku_grids
from trialogue.samplers import Ancestral, generate
from trialogue.samplers.exact import exact_distribution, total_variation

ORDERS = ("puzzle-first", "solution-first")


def brute_force_grids() -> set[tuple[int, ...]]:
    rows = list(permutations(range(1, 5)))
    found = set()
    for grid in product(rows, repeat=4):
        columns = all(len(set(column)) == 4 for column in zip(*grid, strict=True))
        boxes = all(
            len({grid[r][c] for r in (y, y + 1) for c in (x, x + 1)}) == 4 for y in (0, 2) for x in (0, 2)
        )
        if columns and boxes:
            found.add(tuple(cell for row in grid for cell in row))
    return found


def test_number_of_grids_is_288():
    grids = [tuple(grid) for grid in sudoku_grids().tolist()]
    assert len(grids) == 288
    assert grids == sorted(brute_force_grids())


def distribution_of(puzzles: SudokuPuzzles) -> dict[tuple[int, ...], float]:
    states = map(tuple, puzzles.states().tolist())
    return dict(zip(states, puzzles.probabilities().tolist(), strict=True))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("clues", [0, 2, 16])
def test_oracle_has_the_distribution_of_solution_first_sampling(clues, order):
    puzzles = SudokuPuzzles(clues, order)
    distribution = distribution_of(puzzles)
    assert len(distribution) == puzzles.size == 288 * {0: 1, 2: 120, 16: 1}[clues]
    if clues == 0:
        assert total_variation(exact_distribution(Ancestral(), puzzles).probabilities, distribution) < 1e-12
    # For prefixes of a few sequences, count the sequences that continue with each token.
    states = puzzles.states()
    for row in states[:: max(1, len(states) // 3)].tolist():
        for length in range(0, 32, 3):
            same = states[(states[:, :length] == torch.tensor(row[:length])).all(1)]
            counts = torch.bincount(same[:, length], minlength=5).double()
            found = puzzles.next_log_probs(torch.tensor([row]), torch.tensor([length]))[0].exp()
            assert torch.allclose(found, counts / counts.sum(), atol=1e-14)


@pytest.mark.parametrize("order", ORDERS)
def test_complete_sequences_have_no_continuation(order):
    puzzles = SudokuPuzzles(clues=4, order=order)
    (row,) = puzzles.sample(1).tolist()
    assert puzzles.begins(tuple(row))
    assert list(puzzles.weights(tuple(row))) == [0.0] * 5


@pytest.mark.parametrize("order", ORDERS)
def test_samples_follow_the_distribution(order):
    puzzles = SudokuPuzzles(7, order)
    for drawn in (puzzles.sample(3000, seed=1), generate(puzzles, num_samples=40, seed=1).tokens):
        first, second = drawn.split(16, 1)
        puzzle, solution = (first, second) if order == "puzzle-first" else (second, first)
        assert bool(((puzzle > 0).sum(1) == 7).all())
        assert bool(((puzzle == 0) | (puzzle == solution)).all())
        assert {tuple(row) for row in solution.tolist()} <= {tuple(row) for row in sudoku_grids().tolist()}
    counts = Counter(
        tuple(row) for row in puzzles.sample(28_800, seed=2).split(16, 1)[order == ORDERS[0]].tolist()
    )
    assert len(counts) == 288
    # The expected count is 28,800 / 288 with a standard deviation of ten.
    assert 40 < min(counts.values()) < max(counts.values()) < 170
    assert puzzles.sample(0).shape == (0, 32)
    assert torch.equal(puzzles.sample(5, seed=2), puzzles.sample(9, seed=2)[:5])
    blanks = puzzles.sample(8000, seed=3).split(16, 1)[order != ORDERS[0]] == 0
    # Each cell is a clue with probability 7 / 16. The standard deviation of the frequency is 0.0055.
    assert bool(((1 - blanks.double().mean(0)) - 7 / 16).abs().max() < 0.033)


def test_dead_end_probability():
    """Compare with a recursion over the fraction of successful continuations."""

    def completed(grid: tuple[int, ...]) -> float:
        if len(grid) == 16:
            return 1.0
        digits = allowed_digits(grid)
        return sum(completed((*grid, digit)) for digit in digits) / len(digits) if digits else 0.0

    assert dead_end_probability() == pytest.approx(1 - completed(()))
    assert dead_end_probability() == pytest.approx(0.25)


def test_every_clue_requires_a_scan_of_the_grids():
    puzzles = SudokuPuzzles(6)
    for prefix, looks in (((), 0), ((1,), 288), ((1, 0), 288), ((1, 0, 2), 288 + 72)):
        before = puzzles.looked_up
        puzzles.weights(prefix)
        assert puzzles.looked_up - before == looks


test_invalid_input_is_reported = refusals(
    "{}",
    [
        (lambda: SudokuPuzzles(6).states(), "^clues=6: .*2306304 puzzles"),
        (lambda: generate(SudokuPuzzles(6), [[1, 1]]), r"^tokens=\(1, 1\): use a prefix of a sequence"),
        (lambda: generate(SudokuPuzzles(6, "solution-first"), [[0]]), "use a prefix of a sequence"),
    ],
)
