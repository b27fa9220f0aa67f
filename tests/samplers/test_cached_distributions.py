"""Cached distributions: the output head is applied once per prefix and never to another prefix."""

from typing import ClassVar

import pytest
import torch

from samplers.stateful_tree import StoredContext, StoredTree, prefix_of
from trialogue.samplers import (
    Backtracking,
    MaskedDecoding,
    Rejection,
    SequentialMonteCarlo,
    ValueGuided,
    generate,
)
from trialogue.samplers.prefix.batch import distribution_cache, shared_results, tree
from trialogue.testing.trees import RandomTree

# The head maps a hidden state of 6 numbers to 9 tokens.
TREE = RandomTree(103, vocab=9, horizon=4, eos=2)
# No prompt is a prefix of another one.
PROMPTS = [(0, 1), (1,), (0, 1)]
SETTINGS = {"num_samples": 4, "max_steps": 200, "seed": 3}


class CountedHead(StoredContext):
    """A context that lists the prefixes to which the head was applied."""

    applied: ClassVar[list[tuple[int, ...]]] = []

    def log_probs(self, features):
        type(self).applied += [prefix_of(row) for row in features.tolist()]
        return super().log_probs(features)


def run(oracle, sampler, value, **settings):
    return generate(oracle, PROMPTS, sampler=sampler, verifier=value, **SETTINGS, **settings)


def test_distributions_stay_with_their_prefixes_after_a_removal(monkeypatch):
    monkeypatch.setattr(tree, "_FIRST_NODES", 16)
    prompts = [(one, other) for one in range(9) for other in range(9) if 2 not in (one, other)]
    settings = {"sampler": ValueGuided(lazy=False), "verifier": TREE.value, "num_samples": 3, "batch_size": 5}
    expected = generate(TREE.table(), prompts, **settings)
    applied = []
    for forget in (tree.NodeTree.forget, lambda *_: None):
        monkeypatch.setattr(tree.NodeTree, "forget", forget)
        CountedHead.applied = []
        found = generate(StoredTree(TREE, CountedHead), prompts, **settings)
        assert found.sequences() == expected.sequences()
        torch.testing.assert_close(found.log_prob, expected.log_prob)
        applied.append(CountedHead.applied)
    assert applied[0] == applied[1]


@pytest.mark.parametrize(
    "sampler",
    [Rejection(), MaskedDecoding(), Backtracking(3, 2), SequentialMonteCarlo(4, 1.0), ValueGuided()],
    ids=repr,
)
def test_the_head_is_applied_once_to_each_prefix(sampler):
    value = TREE.judges if isinstance(sampler, Rejection | Backtracking) else TREE.value
    CountedHead.applied = []
    taken = run(StoredTree(TREE, CountedHead), sampler, value)
    assert len(CountedHead.applied) == len(set(CountedHead.applied)) < taken.total.queries


def test_a_full_cache_removes_the_oldest_entries_first(monkeypatch):
    monkeypatch.setattr(
        shared_results,
        "DistributionCache",
        lambda tree, limit: distribution_cache.DistributionCache(tree, limit, most_bytes=5 * TREE.vocab * 8),
    )
    CountedHead.applied = []
    sampler, value = ValueGuided(), TREE.value
    taken = run(StoredTree(TREE, CountedHead), sampler, value, batch_size=2)
    assert len(set(CountedHead.applied)) < len(CountedHead.applied) < taken.total.queries
    assert taken.sequences() == run(TREE.table(), sampler, value).sequences()
