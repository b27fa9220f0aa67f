"""Tests of the study `solution-first`: exact rows, and wrong measurements that they reject."""

import dataclasses
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from known_rows import table

from trialogue.data.puzzles.sudoku import SudokuPuzzles
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.solution_first import measure
from trialogue_lab.studies.solution_first.config import PRESETS
from trialogue_lab.studies.solution_first.statistics import counted_fall, growth, leading_fall
from trialogue_lab.theory.factoring.prime_density import density_variation

SMOKE = PRESETS["smoke"]


def test_distributions_are_exact() -> None:
    assert all(row["variation"] < 1e-12 for row in measure.measure_stopping(SMOKE))
    assert all(row["variation"] < 1e-12 and row["factorings"] == 0 for row in measure.measure_activations())


def sudoku_error() -> float:
    return max(row["error"] for row in measure.measure_sudoku(SMOKE) if row["kind"] == "sudoku")


def test_sudoku_has_the_same_distribution_in_both_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sudoku_error() < 1e-9
    right = SudokuPuzzles.weights

    def blanks_as_likely_as_clues(puzzles: SudokuPuzzles, prefix: tuple[int, ...]) -> Any:
        return [float(weight > 0) for weight in right(puzzles, prefix)]

    monkeypatch.setattr(SudokuPuzzles, "weights", blanks_as_likely_as_clues)
    assert sudoku_error() > 0.1


def halving_error(rows: Rows) -> float:
    """Return the largest relative difference between look-ups and objects / 2^i, if many objects fit."""
    table = rows["question"].query("fitting >= 32")
    return float((table.indexed / table.fitting - 1).abs().max())


def test_an_index_searches_matching_objects_only() -> None:
    rows = Rows(list(measure.measure_questions(SMOKE)))
    table = rows["question"]
    assert halving_error(rows) < 0.1
    assert (table.variation < 1e-12).all()
    assert (table.rescanned >= table.objects).all()


def test_error_after_counted_digits_has_the_expected_value() -> None:
    rows = {row["counted"]: row["variation"] for row in measure.measure_density(SMOKE) if row["digits"] == 4}
    for counted in (1, 2):
        assert rows[counted] == pytest.approx(float(density_variation(4, counted)[-1]), abs=1e-12)


def variations(table: dict[tuple[int, int], float]) -> Rows:
    found = [
        {"digits": n, "length": k, "counted": n - k, "variation": value} for (n, k), value in table.items()
    ]
    return Rows([{"kind": "density", **row} for row in found])


def test_trends_are_largest_ratios() -> None:
    rows = variations(
        {(n, k): 10.0 ** (k - n) * (2 if n == 6 else 1) for n in range(4, 8) for k in range(1, n)}
    )
    assert leading_fall()(rows).item() == pytest.approx(math.log(0.2))
    assert counted_fall(2)(rows).item() == pytest.approx(math.log(2))
    assert counted_fall(2).missing_rows(variations({(4, 2): 0.5})) == "a trend needs at least two sizes"


def test_vectors_are_split_into_batches_within_the_bound() -> None:
    rows = list(measure.measure_overlap(dataclasses.replace(SMOKE, vectors=250)))
    assert [row["vectors"] for row in rows] == [100, 100, 50]
    assert all(row["excess"] <= 1e-12 and 0.5 < row["ratio"] <= 1 for row in rows)


def test_growth_of_the_most_expensive_digit_has_the_expected_value() -> None:
    seed, digits, position = map(np.array, zip(*product((1, 2), (1, 2, 3), (0, 1)), strict=True))
    products = np.where(position, 2.0 * 10**digits, 1.0)
    places = {"seed": seed, "digits": digits, "order": "product-first", "position": position}
    rows = Rows(table("first number", **places, products=products))
    assert growth("products")(rows).tolist() == pytest.approx([1, 1])
