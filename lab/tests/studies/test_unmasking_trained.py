"""Tests of the study `unmasking-trained` with a solver by brute force, exact conditionals and stored rows."""

from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from torch import Tensor

from trialogue.data.puzzles.sudoku import sudoku_grids
from trialogue.oracles import Masked
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.unmasking_trained.config import ADDITION, SUDOKU, Config
from trialogue_lab.studies.unmasking_trained.measure import ORDERS, count_solved
from trialogue_lab.studies.unmasking_trained.puzzles import make_material, write_additions
from trialogue_lab.studies.unmasking_trained.statistics import solved

CONFIG = replace(Config(), tests=12, sums=300, digits=2)


def solve(cells: list[int]) -> list[list[int]]:
    """Return all completions of a puzzle with -1 in empty cells, by trying every digit in every empty cell."""
    if -1 not in cells:
        return [cells]
    cell = cells.index(-1)
    found = []
    for digit in range(4):
        seen = {
            other
            for other in range(16)
            if cells[other] == digit
            and (
                other // 4 == cell // 4
                or other % 4 == cell % 4
                or (other // 8, other % 4 // 2) == (cell // 8, cell % 4 // 2)
            )
        }
        if not seen:
            found += solve([*cells[:cell], digit, *cells[cell + 1 :]])
    return found


def test_held_out_puzzles_have_one_solution_which_is_not_trained() -> None:
    material = make_material(CONFIG, SUDOKU, 3)
    trained = {tuple(grid) for grid in material.training.tolist()}
    assert len(trained) == 288 - CONFIG.held_out
    for name, (prompts, solutions) in material.tests.items():
        assert (prompts >= 0).sum(1).tolist() == [CONFIG.clues] * CONFIG.tests
        for prompt, solution in zip(prompts.tolist(), solutions.tolist(), strict=True):
            assert solve(prompt) == [solution]
            assert (tuple(solution) in trained) == (name == "seen")


def test_additions_are_right_and_not_trained() -> None:
    material = make_material(CONFIG, ADDITION, 3)
    trained = {tuple(text) for text in material.training.tolist()}
    assert len(trained) == CONFIG.sums
    prompts, solutions = material.tests["held out"]
    for prompt, solution in zip(prompts.tolist(), solutions.tolist(), strict=True):
        first, second, total = (
            int("".join(map(str, part))) for part in (solution[:2], solution[2:4], solution[4:])
        )
        assert first + second == total
        assert prompt == [*solution[:4], -1, -1, -1]
        assert tuple(solution) not in trained
    assert write_additions(torch.tensor([[99, 1], [0, 7]]), 2).tolist() == [
        [9, 9, 0, 1, 1, 0, 0],
        [0, 0, 0, 7, 0, 0, 7],
    ]


@dataclass
class Grids(Masked):
    """Conditionals of the uniform distribution on all Sudoku grids, with digits that are raised by `shift`."""

    shift: int = 0
    vocab_size = 4
    sites = 16

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        grids = torch.tensor(sudoku_grids() - 1)
        agrees = ((grids == tokens[:, None]) | masked[:, None]).all(2).double()
        counts = torch.einsum("rg,gsv->rsv", agrees, torch.nn.functional.one_hot(grids, 4).double())
        shares = torch.where(counts.sum(2, keepdim=True) > 0, counts, 1.0)
        return (shares / shares.sum(2, keepdim=True)).roll(self.shift, 2).log()


@pytest.mark.parametrize(("shift", "right"), [(0, 12), (1, 0)])
def test_exact_conditionals_solve_all_puzzles_and_wrong_ones_none(shift: int, right: int) -> None:
    material = make_material(CONFIG, SUDOKU, 5)
    rows = list(count_solved(Grids(shift), material, (1, 4), 0, last=True))
    found = [(row["puzzles"], row["temperature"], row["size"], row["order"]) for row in rows]
    settings = [("held out", 0.0, 1), ("held out", 0.0, 4), ("held out", 1.0, 1), ("seen", 0.0, 1)]
    assert found == [(*setting, order) for setting, order in product(settings, ORDERS)]
    for row in rows:
        # The true conditionals of a puzzle with one solution are certain.
        assert (row["solved"], row["tests"]) == (right, 12), row


def test_before_the_end_only_one_token_per_pass_is_tested() -> None:
    rows = list(count_solved(Grids(), make_material(CONFIG, SUDOKU, 5), (1, 2), 0, last=False))
    found = [(row["puzzles"], row["temperature"], row["size"], row["order"]) for row in rows]
    assert found == [("held out", 0.0, 1, name) for name in ORDERS]


def test_shares_of_stages_are_counted_per_training() -> None:
    common = {
        "kind": "solved",
        "task": "sudoku",
        "size": 1,
        "temperature": 0.0,
        "puzzles": "held out",
        "tests": 10,
    }
    rows = Rows(
        [
            {**common, "seed": seed, "step": step, "order": order, "solved": solved_}
            for seed in (1, 2)
            for step, shares in ((100, (1, 4)), (200, (2, 7)), (400, (5, 10)))
            for order, solved_ in zip(("random", "confidence"), shares, strict=True)
        ],
        config={"sudoku_steps": [100, 200, 400]},
    )
    shares = {
        stage: solved("sudoku", "confidence", stage)(rows).tolist() for stage in ("early", "late", "mean")
    }
    assert shares == {"early": [0.4] * 2, "late": [1.0] * 2, "mean": pytest.approx([0.7] * 2)}
    gain = solved("sudoku", "confidence") - solved("sudoku", "random")
    assert gain(rows).tolist() == pytest.approx([0.5] * 2)


def test_settings_that_contradict_each_other_are_rejected() -> None:
    with pytest.raises(Exception, match=r"^sizes=\(1, 2\): include 4"):
        replace(CONFIG, sizes=(1, 2))
    with pytest.raises(Exception, match=r"^sums=99: use at most 98, because there are 100 pairs"):
        replace(CONFIG, digits=1, sums=99, tests=2)
