"""Tests of the largest and smallest values over the rows of a kind."""

import math

from trialogue_lab.ledger import Rows
from trialogue_lab.ledger.claims.extremes import largest, smallest

ROWS = Rows(
    [
        {"kind": "length", "family": "a", "bound": 2.0, "cost": 1.5, "rate_0.5": 0.1},
        {"kind": "length", "family": "b", "bound": 1.0, "cost": 3.0, "rate_0.5": 0.2},
        {"kind": "chain", "cost": 100.0},
    ]
)


def test_extremes_are_over_columns_and_expressions() -> None:
    assert largest("length", "cost")(ROWS).tolist() == [3.0]
    assert smallest("length", "cost", "bound")(ROWS).tolist() == [1.0]
    assert largest("length", "cost - bound")(ROWS).tolist() == [2.0]
    assert largest("length", "cost - bound", where="family in ('a',)")(ROWS).tolist() == [-0.5]
    assert largest("length", "rate_0.5")(ROWS).tolist() == [0.2]


def test_missing_rows_have_no_extreme() -> None:
    assert largest("curve", "cost")(ROWS).empty
    assert largest("length", "cost", where="family == 'c'")(ROWS).empty


def test_missing_numbers_are_not_ignored() -> None:
    rows = Rows([{"kind": "chain", "cost": 1.0}, {"kind": "chain", "cost": math.nan}])
    assert math.isnan(largest("chain", "cost")(rows).item())
    assert largest("chain", "cost", where="cost.notna()")(rows).tolist() == [1.0]


def test_the_name_of_a_statistic_contains_its_condition() -> None:
    first, second = (largest("length", "cost", where=f"family == {name!r}") for name in "ab")
    assert first.name != second.name
