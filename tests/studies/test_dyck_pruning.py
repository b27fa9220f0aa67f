"""The quantities of dyck-pruning by hand-made rows: slopes, lines, and matrices that differ."""

import pytest

from trialogue.ledger import Rows
from trialogue.studies.dyck_pruning.quantities import (
    different_first,
    falls,
    matrices_fall,
    numbers_fall,
    straightness,
)


def test_slopes_are_in_decades_and_lines_are_lines() -> None:
    numbers = [
        {"kind": "number", "seed": seed, "count": count, "error": 10.0 ** (-seed * count / 10)}
        for seed in (1, 2)
        for count in (8, 12, 16)
    ]
    crooked = {6: 1.0, 9: 0.01, 12: 1.0}
    matrices = [
        {"kind": "matrix", "size": 4, "seed": 1, "units": units, "error": 10.0**-units, "same_first": True}
        for units in crooked
    ] + [
        {"kind": "matrix", "size": 4, "seed": 2, "units": units, "error": error, "same_first": units != 9}
        for units, error in crooked.items()
    ]
    rows = Rows([*numbers, *matrices])
    assert numbers_fall()(rows).tolist() == pytest.approx([-0.1, -0.2])
    assert matrices_fall(4)(rows).tolist() == pytest.approx([-1.0, 0.0], abs=1e-9)
    assert straightness(4)(rows).tolist() == pytest.approx([1.0, 0.0], abs=1e-9)
    assert different_first()(rows).tolist() == [1.0]
    assert falls("scores")(rows).empty
