"""Rounds that continue over several calls of `generate`, and tables as tensors."""

from itertools import pairwise

import pytest
import torch

from trialogue.errors import InputError
from trialogue.samplers import AdaptiveRejection, PromptRounds, generate
from trialogue.samplers.prefix.rejection_table_file import num_new_prefixes, table_of, tensors_of
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
            tensors = tensors_of(table)
            again = table_of(tensors)
            assert again == table
            assert all(torch.equal(tensors[name], other) for name, other in tensors_of(again).items())
            assert num_new_prefixes(None, again) == len(table)
            assert num_new_prefixes(before, table) == len(table) - (0 if before is None else len(before))
    assert table_of(tensors_of(None)) is None
