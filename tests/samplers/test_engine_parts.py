"""The parts of the engine and of the batch, each by itself."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from trialogue.samplers import BestOfN
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.prefix.engine import clock as clocks
from trialogue.samplers.prefix.engine.clock import Clock
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.order import Order
from trialogue.samplers.prefix.moves import NO_TOKEN, Moves
from trialogue.testing.trees import RandomTree

TREE = RandomTree(71, horizon=3, eos=1)


def ints(*values: int) -> Tensor:
    return torch.tensor(values)


def test_scores_add_up_along_rows_and_are_unknown_where_nobody_asked() -> None:
    scores, distributions = Scores(3), torch.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    scores.add(2)
    scores.answered(ints(0, 1), ints(0, 0), distributions)
    scores.apply(Moves(ints(0, 1), ints(0, 0), ints(1, 0), ints(0, 0)))
    assert scores.values[:, 1].tolist() == pytest.approx([math.log(0.75), math.log(0.5)])
    # Row 1 continues from row 0, whose distribution it is that was asked for; row 0 appends without asking.
    scores.answered(ints(0), ints(1), distributions[1:])
    scores.continue_from(ints(0), ints(1))
    scores.apply(Moves(ints(0, 0), ints(1, 1), ints(NO_TOKEN, 0), ints(0, 0)))
    assert float(scores.values[1, 2]) == pytest.approx(math.log(0.75 * 0.5))
    scores.apply(Moves(ints(0, 1), ints(1, 2), ints(0, NO_TOKEN), ints(0, 0)))
    assert math.isnan(float(scores.values[0, 2]))
    scores.select(ints(1))
    assert scores.values.shape == (1, 4)


def order(samples: int = 2, earliest: int = 0, **budget: Any) -> Order:
    """So many samples of each of two prompts."""
    tokens, ids = torch.tensor([[0, 9], [0, 0]]), torch.arange(2 * samples)
    made = Order(tokens, ints(1, 2), ints(3, 3), ids, **{"max_steps": 99, **budget})
    made.earliest = earliest
    return made


def groups_of(sampler: Any) -> Groups:
    return Groups(sampler, Batch(TREE.table(), 4 * sampler.rows_per_sample, 3, scored=True))


def test_a_clock_shares_every_second_among_those_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 14.0, 15.0, 21.0])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    clock = Clock()
    clock.tick(4)
    assert clock.seconds == 1
    clock.tick(1)
    assert clock.seconds == 2
    assert clock.elapsed == 11


def test_a_budget_counts_from_admission_and_spares_who_has_only_to_choose() -> None:
    groups, none = groups_of(BestOfN(2)), torch.zeros(2, dtype=torch.bool)
    groups.admit(order(max_steps=6), ints(0), step=0, seconds=0.0)
    groups.admit(order(max_steps=6), ints(2), step=4, seconds=0.0)
    assert groups.stopped(none, step=5).tolist() == [False, False]
    assert groups.stopped(none, step=6).tolist() == [True, False]
    assert groups.stopped(~none, step=1).tolist() == [True, True]
    groups = groups_of(BestOfN(2))
    for place in (0, 2):
        groups.admit(order(max_queries=4), ints(place), step=0, seconds=0.0)
    groups.batch.meter.queries += ints(2, 2, 1, 2)
    assert groups.stopped(none, step=5).tolist() == [True, False]
    complete = torch.ones(4, dtype=torch.bool)
    groups.batch._rows.complete = complete
    assert groups.stopped(none, step=5).tolist() == [False, False]
