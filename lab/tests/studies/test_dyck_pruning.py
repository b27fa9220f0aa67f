"""Tests of statistics of `dyck-pruning` on known rows, and of rows of a pruned transformer."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from known_rows import table

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.dyck_pruning import statistics as stats
from trialogue_lab.studies.dyck_pruning.config import PRESETS
from trialogue_lab.studies.dyck_pruning.measure import parts


def test_slopes_are_in_decades_and_r_squared_measures_straightness() -> None:
    seeds, counts, units = np.array([1, 1, 1, 2, 2, 2]), np.array([8, 12, 16] * 2), np.array([6, 9, 12])
    rows = Rows(
        table("number", seed=seeds, count=counts, error=10.0 ** (-seeds * counts / 10))
        + table("matrix", size=4, seed=1, units=units, error=10.0**-units, same_first=True)
        + table("matrix", size=4, seed=2, units=units, error=[1.0, 0.01, 1.0], same_first=units != 9)
    )
    assert stats.numbers_fall()(rows).tolist() == pytest.approx([-0.1, -0.2])
    assert stats.matrices_fall(4)(rows).tolist() == pytest.approx([-1.0, 0.0], abs=1e-9)
    assert stats.straightness(4)(rows).tolist() == pytest.approx([1.0, 0.0], abs=1e-9)
    assert stats.different_first()(rows).tolist() == [1.0]
    assert stats.falls("scores")(rows).empty


def test_both_targets_must_be_within_the_error() -> None:
    seed, hidden, first = map(np.array, zip(*product((1, 2, 3), (20, 30), (0, 2)), strict=True))
    sizes = {"layers": 1, "hidden": hidden, "first": first, "seed": seed}
    errors = {"error": 10.0 ** (-hidden / 10 * seed)}
    errors["other_error"] = np.where((seed == 2) & (first == 2), 0.2, 0.01)
    rows = Rows(table("transformer", **sizes, **errors, same=(seed != 1) | (first != 0)))
    assert stats.both_transformers_within(1, 30, 0.1)(rows).tolist() == [1.0, 0.0, 1.0]
    assert stats.transformers_fall(1)(rows).tolist() == pytest.approx([-0.1, -0.2, -0.3])
    narrow = stats.error("transformer", layers=1, hidden=20, first=0)(rows)
    assert narrow.tolist() == pytest.approx([1e-2, 1e-4, 1e-6])
    assert stats.different_shared_layers()(rows).tolist() == [2.0]


def test_wider_transformers_have_smaller_errors_after_pruning() -> None:
    config = replace(PRESETS["smoke"], hidden=(16, 96))
    named = {part.name: part for part in parts(config)}
    rows = Rows(list(named["transformer-1"].rows(Path())))["transformer"]
    assert sorted(zip(rows.hidden, rows["first"], strict=True)) == [(16, 0), (16, 2), (96, 0), (96, 2)]
    assert rows.same.all()
    assert not rows.changed.any()
    wide, narrow = (float(rows[rows.hidden == hidden].error.max()) for hidden in (96, 16))
    assert wide < narrow
    assert wide < float(rows.targets_apart.iloc[0])
