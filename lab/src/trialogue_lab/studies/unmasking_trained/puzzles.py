"""Sudoku puzzles with unique solutions, and additions, as sequences with masked positions."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data.puzzles.sudoku import CELLS, sudoku_grids
from trialogue.randomness import derive_seed, generator
from trialogue.samplers.unmasking.engine import MASKED
from trialogue_lab.studies.unmasking_trained.config import SUDOKU, Config, Task


class Material(NamedTuple):
    """Training and test data of a task.

    Attributes:
        vocab_size: Number of tokens.
        prompt: Number of tokens at the start of a sequence that are never masked.
        training: Complete training sequences (n, length) int64.
        tests: Test puzzles by their name: prompts with -1 at masked positions, and solutions, both (tests, length)
            int64. Solutions of "held out" puzzles do not occur in `training`, and those of "seen" ones do.
    """

    vocab_size: int
    prompt: int
    training: Tensor
    tests: dict[str, tuple[Tensor, Tensor]]


def make_material(config: Config, task: Task, seed: int) -> Material:
    """Split the data of a task into training and test data, and draw the test puzzles.

    Args:
        config: Settings of the run.
        task: Name of the task.
        seed: Seed of the split and of the puzzles.
    """
    stream = derive_seed(seed, "unmasking-trained", task)
    if task == SUDOKU:
        grids = torch.tensor(sudoku_grids() - 1)[_permutation(len(sudoku_grids()), stream)]
        tested, training = grids[: config.held_out], grids[config.held_out :]
        tests = {
            name: draw_puzzles(chosen, config.clues, config.tests, derive_seed(stream, name))
            for name, chosen in (("held out", tested), ("seen", training))
        }
        return Material(4, 0, training, tests)
    numbers = _draw_different(10 ** (2 * config.digits), config.sums + config.tests, stream)
    texts = write_additions(
        torch.stack((numbers // 10**config.digits, numbers % 10**config.digits), 1), config.digits
    )
    prompt = 2 * config.digits

    def ask(solutions: Tensor) -> tuple[Tensor, Tensor]:
        return solutions.masked_fill(torch.arange(solutions.shape[1]) >= prompt, MASKED), solutions

    training, tested = texts[: config.sums], texts[config.sums :]
    return Material(10, prompt, training, {"held out": ask(tested), "seen": ask(training[: config.tests])})


def draw_puzzles(grids: Tensor, clues: int, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw puzzles that have exactly one solution among all 288 grids.

    Args:
        grids: Solutions to choose from (n, 16) int64, with digits from 0.
        clues: Number of given cells.
        count: Number of puzzles.
        seed: Seed.

    Returns:
        Puzzles (count, 16) int64 with -1 in empty cells, and their solutions (count, 16).
    """
    every, random = torch.tensor(sudoku_grids() - 1), generator(seed, "puzzles")
    puzzles, solutions = list[Tensor](), list[Tensor]()
    while sum(map(len, puzzles)) < count:
        solution = grids[torch.randint(len(grids), (count,), generator=random)]
        given = torch.rand(count, CELLS, generator=random).argsort(1).argsort(1) < clues
        agrees = ((every == solution[:, None]) | ~given[:, None]).all(2)
        unique = agrees.sum(1) == 1
        puzzles.append(torch.where(given, solution, MASKED)[unique])
        solutions.append(solution[unique])
    return torch.cat(puzzles)[:count], torch.cat(solutions)[:count]


def write_additions(numbers: Tensor, digits: int) -> Tensor:
    """Write pairs of numbers and their sums as decimal digits, with the most significant digit first.

    Args:
        numbers: Pairs of numbers (n, 2) int64 below 10^digits.
        digits: Number of digits of each number.

    Returns:
        Digits (n, 3 * digits + 1) int64 of the first number, the second number, and the sum, which has one digit more.
    """

    def write(values: Tensor, width: int) -> Tensor:
        return values[:, None] // 10 ** torch.arange(width - 1, -1, -1) % 10

    first, second = numbers.T
    return torch.cat((write(first, digits), write(second, digits), write(first + second, digits + 1)), 1)


def _draw_different(below: int, count: int, seed: int) -> Tensor:
    """Return `count` different numbers (count,) int64 below `below`, in random order."""
    if below <= 4 * count:
        return _permutation(below, seed)[:count]
    drawn = torch.randint(below, (2 * count,), generator=generator(seed, "numbers")).unique()
    return drawn[_permutation(len(drawn), seed)[:count]]


def _permutation(size: int, seed: int) -> Tensor:
    return torch.randperm(size, generator=generator(seed, "permutation"))
