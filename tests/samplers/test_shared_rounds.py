"""Rounds that continue over several calls of `generate`, and tables as tensors."""

from itertools import count, pairwise

import pytest
import torch

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.samplers import AdaptiveRejection, OpenRun, PromptRounds, Terms, generate, stream
from trialogue.samplers.prefix.rejection_table_file import (
    num_new_prefixes,
    table_from_tensors,
    table_to_tensors,
)
from trialogue.testing.trees import RandomTree, viable

TREES = [viable(RandomTree(seed, vocab=3, horizon=4, eos=(None, 1)[seed % 2])) for seed in range(3)]
SAMPLER = AdaptiveRejection(share=4)


def drawn(tree, ids, shared=None, prompts=((),), batch_size=3):
    return generate(
        tree.table(),
        prompts,
        sampler=SAMPLER,
        verifier=tree.allows,
        num_samples=len(ids) // len(prompts),
        sample_ids=ids,
        batch_size=batch_size,
        shared=shared,
        seed=2,
    )


def continued(tree, restored):
    """Return the calls of 14 samples that are drawn in three parts, the second of which ends within a round."""
    rounds, calls = PromptRounds(SAMPLER), []
    for part in (range(4), range(4, 10), range(10, 14)):
        if rounds.ended % 4 == 0:
            rounds = restored(rounds) if rounds.ended else rounds
        calls += drawn(tree, list(part), [rounds]).calls.tolist()
    assert (rounds.ended, rounds.finished) == (14, 3)
    return calls


def from_tensors(rounds):
    return PromptRounds(SAMPLER, rounds.finished, rounds.tensors())


def test_rounds_continue_over_several_calls_and_from_tensors():
    expected = [drawn(tree, list(range(14))).calls.tolist() for tree in TREES]
    assert [continued(tree, lambda rounds: rounds) for tree in TREES] == expected
    assert [continued(tree, from_tensors) for tree in TREES] == expected


def test_rounds_that_continue_with_an_empty_table_are_detected():
    expected = [drawn(tree, list(range(14))).calls.tolist() for tree in TREES]
    assert [
        continued(tree, lambda rounds: PromptRounds(SAMPLER, rounds.finished)) for tree in TREES
    ] != expected


def test_several_prompts_may_share_one_object():
    tree, rounds = TREES[0], PromptRounds(SAMPLER)
    together = drawn(tree, list(range(8)), [rounds] * 8, [()] * 8)
    assert together.calls.tolist() == drawn(tree, list(range(8))).calls.tolist()
    with pytest.raises(InputError, match="one object for each of the 1 prompts"):
        drawn(tree, [0], [rounds] * 2)


def test_tables_are_restored_exactly():
    for tree in TREES:
        tables = [None]
        for number in range(1, 4):
            rounds = PromptRounds(SAMPLER)
            drawn(tree, list(range(4 * number)), [rounds])
            rounds._merge()
            tables.append(rounds._start.table.items[0])
        for before, table in pairwise(tables):
            tensors = table_to_tensors(table)
            again = table_from_tensors(tensors)
            assert again == table
            assert all(torch.equal(tensors[name], other) for name, other in table_to_tensors(again).items())
            assert num_new_prefixes(None, again) == len(table)
            assert num_new_prefixes(before, table) == len(table) - (0 if before is None else len(before))
    assert table_from_tensors(table_to_tensors(None)) is None


IN_USE = "shared='PromptRounds': 6 unfinished samples of another"


def opened(rounds, tree=TREES[0]):
    """Return an open run, and its submission of six samples in `rounds`."""
    run = OpenRun(tree.table(), SAMPLER, batch_size=3)
    return run, run.submit((), Terms(tree.allows), num_samples=6, seed=2, shared=rounds)


def test_two_open_orders_cannot_share_rounds():
    tree, rounds = TREES[0], PromptRounds(SAMPLER)
    run, _submission = opened(rounds)
    expect_error(IN_USE, run.submit, (), shared=rounds, terms=Terms(tree.allows))
    expect_error(IN_USE, drawn, tree, range(4), [rounds])
    while run.busy:
        run.step()
    assert (rounds.ended, rounds.finished) == (6, 1)
    assert drawn(tree, range(6, 8), [rounds]).calls.tolist() == drawn(tree, range(8)).calls.tolist()[6:]


def test_rounds_continue_after_an_order_that_was_withdrawn_or_deleted():
    tree, rounds = TREES[0], PromptRounds(SAMPLER)
    run, submission = opened(rounds)
    run.step()
    run.withdraw(submission)
    assert drawn(tree, range(4), [rounds]).accepted.all()
    assert rounds.ended >= 4
    run, submission = opened(rounds)
    del run, submission
    assert drawn(tree, range(4), [rounds]).accepted.all()


def test_rounds_continue_after_an_error_whose_traceback_still_exists():
    tree, rounds, calls = TREES[0], PromptRounds(SAMPLER), count()

    def broken(prefix):
        assert next(calls) < 5
        return True

    settings = {"sampler": SAMPLER, "num_samples": 6, "shared": [rounds]}
    with pytest.raises(InputError) as kept:
        generate(tree.table(), verifier=broken, **settings)
    run = OpenRun(tree.table(), SAMPLER)
    run.submit((), Terms(broken), num_samples=6, shared=rounds)
    with pytest.raises(InputError):
        [run.step() for _ in range(5)]
    assert drawn(tree, range(4), [rounds]).accepted.all()
    assert kept.tb
    samples = stream(tree.table(), verifier=tree.allows, **settings)
    expect_error(IN_USE, drawn, tree, range(4), [rounds])
    started = iter(samples)
    next(started)
    started.close()
    assert drawn(tree, range(4), [rounds]).accepted.all()
