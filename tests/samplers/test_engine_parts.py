"""The parts of the engine and of the batch, each by itself."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from samplers.stored_tree import StoredTree, prefix_of
from trialogue.oracles import Context, as_context
from trialogue.samplers import Ancestral, BestOfN
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.batch.evaluations import Evaluations
from trialogue.samplers.prefix.batch.knowledge import Bill, Knowledge, Meter
from trialogue.samplers.prefix.batch.rows import Ends, Rows, Stopping
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.prefix.batch.tree import PrefixTree, Root
from trialogue.samplers.prefix.engine import clock as clocks
from trialogue.samplers.prefix.engine.clock import Clock
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.order import Order
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.samplers.prefix.moves import NO_TOKEN, Moves
from trialogue.testing.trees import RandomTree

TREE = RandomTree(71, horizon=3, eos=1)


def ints(*values: int) -> Tensor:
    return torch.tensor(values)


def rows_at(*sequences: tuple[int, ...], prompt: int = 0, **when: Any) -> Rows:
    """Rows that hold `sequences`, of up to four tokens, in a tree of their own."""
    tree = PrefixTree(2)
    stop = when.pop("stop", None)
    rows = Rows(tree, 4, Ends(stopping=None if stop is None else Stopping(stop, tree), **when))
    tokens = torch.tensor([[*sequence, *[0] * (4 - len(sequence))] for sequence in sequences])
    lengths = ints(*map(len, sequences))
    rows.add(tokens, lengths, torch.full_like(lengths, prompt), torch.full_like(lengths, 4))
    return rows


def test_rows_are_complete_at_their_limit_at_the_end_and_where_they_are_told_to_stop() -> None:
    rows = rows_at((0, 0), (0, 1), (0, 0, 0, 0), (), eos=1)
    assert rows.complete.tolist() == [False, True, True, False]
    assert rows.growing.tolist() == [0, 3]
    assert rows_at((1,), prompt=1, eos=1).complete.tolist() == [True]
    going_on = rows_at((1,), prompt=1, eos=1, prompts_go_on=True)
    assert going_on.complete.tolist() == [False]
    going_on.advance(going_on.lengths, going_on.lengths, ints(1))
    assert going_on.complete.tolist() == [True]
    asked: list[tuple[int, ...]] = []

    def stop(completion: tuple[int, ...]) -> bool:
        asked.append(completion)
        return sum(completion) > 0

    stopped = rows_at((0, 1), (0, 0), stop=stop)
    assert stopped.complete.tolist() == [True, False]
    stopped.select(ints(0, 1))
    stopped.advance(stopped.lengths, ints(1, 2), ints(NO_TOKEN, 1))
    assert stopped.complete.tolist() == [False, True]
    assert sorted(asked) == [(0,), (0, 0), (0, 0, 1), (0, 1)]  # once about each


def test_children_leave_the_rows_that_they_continue_as_they_are() -> None:
    rows = rows_at((0,), (0, 1))
    children = rows.children(ints(1, 0, 0), ints(0, 0, 1))
    held = [
        row[:length] for row, length in zip(children.tokens.tolist(), children.lengths.tolist(), strict=True)
    ]
    assert held == [[0, 1], [0, 0], [0, 1, 0]]
    assert rows.lengths.tolist() == [1, 2]
    # The same prefix of the same prompt is the same node.
    assert int(children.node[0]) == int(rows.node[1]) != int(children.node[1])


def test_all_of_the_rows_are_taken_without_a_copy() -> None:
    rows = rows_at((0,), (0, 1))
    assert rows.of(rows.tokens, rows.growing) is rows.tokens
    assert torch.equal(rows.of(rows.tokens, ints(0, 1)), rows.tokens)


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


def test_evaluations_follow_their_rows_and_are_made_once() -> None:
    tree = RandomTree(3, horizon=4)
    knowledge, rows = Knowledge(2, memory=1), rows_at((0,), (0, 1))
    rows.tree = knowledge.tree
    rows.path = knowledge.tree.paths(rows.tokens, rows.lengths, rows.start)
    bill = Bill(Meter(2), ints(0, 1))
    opened = []

    def context() -> Context:
        opened.append(1)
        return as_context(StoredTree(tree).open(4, 4))

    evaluations = Evaluations(context, torch.full((4, 5), -1), ints(0, 1)[:0], rows, knowledge, bill)
    evaluations.add(2)
    assert (evaluations.slot.tolist(), opened) == ([0, 1], [])
    features = evaluations.features(ints(0, 1), rows.lengths, counting=True)
    assert [prefix_of(row) for row in features.tolist()] == [(0,), (0, 1)]
    assert (bill.meter.queries.tolist(), bill.meter.positions.tolist()) == ([1, 1], [2, 3])
    # Row 0 continues from row 1, whose evaluations are copied; only what comes behind is made.
    rows.continue_from(ints(1), ints(0))
    evaluations.continue_from(ints(1), ints(0), ints(2))
    rows.advance(ints(2, 2), ints(2, 2), ints(0, NO_TOKEN))
    features = evaluations.features(ints(0), ints(3))
    assert prefix_of(features[0].tolist()) == (0, 1, 0)
    assert (bill.meter.queries.tolist(), bill.meter.positions.tolist()) == ([1, 1], [3, 3])
    children = rows.children(ints(1), ints(1))
    scratch = evaluations.children(ints(1), children, bill.of(ints(1)))
    assert prefix_of(scratch.features(ints(0), ints(3))[0].tolist()) == (0, 1, 1)
    assert bill.meter.positions.tolist() == [3, 4]
    assert opened == [1]


def test_a_meter_keeps_and_appends_rows() -> None:
    meter = Meter(2)
    meter.queries += ints(3, 5)
    meter.select(ints(1))
    meter.extend(1)
    assert {name: counts.tolist() for name, counts in meter.items()} == {
        name: [5, 0] if name == "queries" else [0, 0] for name in Meter.counts
    }


def order(samples: int = 2, earliest: int = 0, **budget: Any) -> Order:
    """So many samples of each of two prompts."""
    tokens, ids = torch.tensor([[0, 9], [0, 0]]), torch.arange(2 * samples)
    made = Order(tokens, ints(1, 2), ints(3, 3), ids, **{"max_steps": 99, **budget})
    made.earliest = earliest
    return made


def groups_of(sampler: Any) -> Groups:
    return Groups(sampler, Batch(TREE.table(), 4 * sampler.rows_per_sample, 3, scored=True))


def test_an_order_repeats_its_prompts_and_cuts_what_lies_behind_them() -> None:
    asked = order()
    assert asked.prompt.tolist() == [0, 0, 1, 1]
    assert asked.capacity == 3
    tokens, lengths = asked.prompts(ints(0, 3), 3)
    assert (tokens.tolist(), lengths.tolist()) == ([[0, 0, 0], [0, 0, 0]], [1, 2])


def test_a_prompt_is_over_with_the_last_of_its_samples() -> None:
    asked = order()
    assert (asked.end(ints(0, 3)), asked.left) == (set(), 2)
    assert asked.end(ints(1)) == {Root((0,))}
    assert asked.end(ints(2)) == {Root((0, 0))}
    alike = Order(torch.zeros(2, 1, dtype=torch.int64), ints(1, 1), ints(2, 2), torch.arange(2), max_steps=9)
    assert alike.end(ints(0)) == set()
    assert alike.end(ints(1)) == {Root((0,))}


def test_a_clock_shares_every_second_among_those_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 14.0, 15.0, 21.0])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    clock = Clock()
    clock.tick(4)
    assert clock.seconds == 1
    clock.tick(1)
    assert clock.seconds == 2
    assert clock.elapsed == 11


def test_groups_are_admitted_kept_and_moved_together() -> None:
    groups = groups_of(BestOfN(3))
    groups.admit(order(), ints(0, 2), step=5, seconds=1.0)
    groups.admit(order(earliest=4), ints(3), step=7, seconds=2.0)
    assert (len(groups), groups.members, groups.first.tolist()) == (3, 3, [0, 3, 6])
    assert groups.batch.lengths.tolist() == [1] * 3 + [2] * 6
    assert groups.total(torch.arange(9)).tolist() == [3, 12, 21]
    assert groups.every(torch.arange(9) >= 3).tolist() == [False, True, True]
    groups.keep(ints(2))
    assert (groups.sample.tolist(), groups.deadline.tolist(), groups.charged.tolist()) == ([7], [106], [2.0])
    assert groups.first_deadline == 106
    assert groups.log_weight is None


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


def test_groups_of_different_orders_have_budgets_of_their_own() -> None:
    groups, none = groups_of(Ancestral()), torch.zeros(3, dtype=torch.bool)
    for budget in ({}, {"max_queries": 2}, {"max_steps": 3}):
        groups.admit(order(**budget), ints(0), step=0, seconds=0.0)
    groups.batch.meter.queries += ints(2, 2, 2)
    assert groups.stopped(none, step=2).tolist() == [False, True, False]
    assert groups.stopped(none, step=3).tolist() == [False, True, True]
    groups.keep(ints(0))
    assert not groups.any_bounded
    assert groups.stopped(none[:1], step=98).tolist() == [False]


def test_a_recorder_keeps_the_moves_that_change_something() -> None:
    groups, recorder = groups_of(BestOfN(2)), TraceRecorder()
    groups.admit(order(), ints(1), step=0, seconds=0.0)
    stay = Moves.stay(groups.batch)
    recorder.record(0, groups, stay)
    recorder.record(1, groups, stay._replace(token=ints(1, NO_TOKEN)))
    recorder.record(2, groups, stay._replace(source=ints(1, 1)))
    trace = recorder.trace()
    assert {name: column.tolist() for name, column in vars(trace).items()} == {
        "step": [1, 2],
        "sample": [1, 1],
        "member": [0, 0],
        "length": [1, 1],
        "source": [0, 1],
        "kept": [1, 1],
        "token": [1, -1],
    }


def test_samples_are_filed_in_their_places_with_the_reason_why_they_ended() -> None:
    groups = groups_of(Ancestral())
    asked = order()
    groups.admit(asked, ints(0, 1, 2), step=0, seconds=1.0)
    groups.admit(order(earliest=3, max_steps=1), ints(2), step=0, seconds=1.0)
    groups.sample[3] = 3
    batch = groups.batch
    batch.log_probs(torch.arange(4))
    batch.apply(Moves.stay(batch)._replace(token=ints(1, 0, 0, NO_TOKEN)))
    finished = torch.tensor([True, True, False, False])
    places = groups.store(asked, ints(0, 1, 3), finished, None, step=1, seconds=3.5)
    assert places.tolist() == [0, 1, 3]
    samples = asked.samples(ints(0, 3, 1))
    assert samples.sequences() == [(0, 1), (0, 0), (0, 0)]
    assert samples.stopped == ["", "max_steps", "failed"]
    assert samples.accepted.tolist() == [True, False, False]
    assert samples.queries.tolist() == [1, 1, 1]
    assert samples.seconds.tolist() == [2.5] * 3
    assert samples.total.seconds == 7.5
    assert float(samples.log_prob[0]) == pytest.approx(math.log(TREE.conditional((0,))[1]))
