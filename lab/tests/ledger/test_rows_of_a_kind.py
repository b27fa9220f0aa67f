"""Rows of a kind: columns of their own, picked by value."""

import pytest

from trialogue_lab.ledger import NoRows, Rows

ROWS = Rows(
    [
        {"kind": "probe", "seed": 0, "kind of rule": "regex", "accuracy": 0.5},
        {"kind": "probe", "seed": 1, "kind of rule": "json", "accuracy": 0.75},
        {"kind": "draw", "seed": 0, "queries": 3},
    ]
)


def test_rows_are_picked_by_the_values_of_their_columns() -> None:
    assert ROWS.where("probe", seed=1).accuracy.tolist() == [0.75]
    assert ROWS.where("probe", seed=1, accuracy=0.5).empty
    assert "queries" not in ROWS.where("probe")


def test_what_was_not_measured_is_named() -> None:
    with pytest.raises(NoRows, match="'walk'"):
        ROWS.where("walk", seed=0)
    with pytest.raises(KeyError, match="depth"):
        ROWS.where("probe", depth=1)
