"""Tests that smoke rows of `memorization-construct` agree with theory, and that its statistics reject wrong rows."""

from collections.abc import Callable

import numpy as np
import pytest
from known_rows import table, verdict_of

from trialogue_lab.ledger import Result, Rows
from trialogue_lab.studies.memorization_construct import STUDY, statistics


@pytest.fixture(scope="module")
def rows(smoke_run: Callable[[str], Result]) -> Rows:
    return STUDY.rows(smoke_run(STUDY.name))


def test_rows_agree_with_theory(rows):
    assert statistics.rank_error("mended")(rows).item() == statistics.rank_error("rank_one")(rows).item() == 0
    assert statistics.rank_error("printed", generic=True)(rows).item() == 0
    assert statistics.rank_error("printed")(rows).item() > 0
    assert (statistics.held("error")(rows) < 1e-9).all()
    assert (statistics.held("excess", 0.0)(rows) < 1e-3).all()
    assert statistics.least_slack("loose")(rows).item() > statistics.least_slack("tight")(rows).item() > 0
    simple, bound = (statistics.look_up_slack(name)(rows).item() for name in ("simple", "bound"))
    assert simple >= bound > 0
    assert (statistics.log_optimum_ratio()(rows) < -0.3).all()
    assert (statistics.ridge_gain()(rows) > 0).all()
    assert statistics.beyond_bound()(rows).abs().max() < 0.1


@pytest.mark.parametrize(("shift", "answer"), [(0.0, "holds"), (-0.03, "refuted")])
def test_a_construction_that_meets_the_bound_is_not_below_it(shift: float, answer: str):
    seeds = np.arange(40)
    accuracy = 0.2 + shift + (-1) ** seeds * 0.004
    records = table("association", seed=seeds, stored=12, contexts=100, bound=0.2, accuracy=accuracy)
    config = {"seeds": tuple(range(40))}
    rows = Rows(records, "kind", config)
    assert verdict_of(STUDY, "accuracy-is-not-below-the-bound", rows, **config).answer == answer
