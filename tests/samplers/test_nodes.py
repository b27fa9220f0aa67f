"""Ids of prefixes: two ids are equal exactly if prompt and prefix are equal."""

import pytest
import torch

from batches import batch_of
from trialogue.data.table import Table
from trialogue.samplers import (
    Backtracking,
    SequentialMonteCarlo,
    TokenwiseRejection,
    generate,
)
from trialogue.samplers.prefix.batch.tree import FeatureCache, NodeTree
from trialogue.testing.trees import RandomTree
from trialogue.verifiers.functions.function import FunctionVerifier

ROWS, CAPACITY, VOCAB = 4096, 12, 5


def test_equal_sequences_of_different_prompts_are_judged_separately():
    judged = []

    def value(completion):
        judged.append(completion)
        return 1.0

    tree = RandomTree(111, horizon=3)
    for scope in ("completion", "sequence"):
        judged.clear()
        run = generate(
            tree.table(),
            [(), (0,)],
            sampler=TokenwiseRejection(),
            verifier=FunctionVerifier(value, scope),
            num_samples=60,
        )
        shared = {sequence for sequence in run.sequences()[:60] if sequence[0] == 0}
        assert shared & set(run.sequences()[60:])
        assert len(judged) == int(run.verifier_calls.sum())
        # The empty prompt has 14 prefixes and the other prompt has 6.
        assert len(judged) == 14 + 6


def test_only_evaluated_prefixes_are_cached_in_bounded_memory():
    vocab, places = 1000, 5
    oracle = Table(
        lambda prefix: [1 + (7 * len(prefix) + sum(prefix) + token) % 11 for token in range(vocab)], vocab
    )
    batch = batch_of(oracle, [(0,)], CAPACITY, start=1)
    batch.shared.memory = memory = FeatureCache(batch.shared.tree, 100, most_bytes=places * vocab * 8 + 7)
    children = batch.peek(torch.arange(vocab), torch.zeros(vocab, dtype=torch.int64))
    rows = torch.arange(8)
    first = children.log_probs(rows)
    assert batch.shared.tree.size > vocab
    assert memory._features is not None
    assert len(memory._features) == len(memory.nodes) == places
    before = batch.meter.positions.clone()
    again = children.log_probs(rows)
    assert torch.equal(first, again)
    # The last five evaluated prefixes are still cached.
    assert int(batch.meter.passes) == 2
    assert memory.nodes.tolist() != [-1] * places
    assert int((batch.meter.positions - before).sum()) == 8 - places


PROMPTS = [tuple(map(int, f"{number:08b}")) for number in range(120)]


def run_of_many_prompts(monkeypatch, sampler, prompts, verifier, memory):
    """Return the samples and the maximum number of nodes at one time."""
    sizes = []
    advance = NodeTree.advance

    def record_size(tree, *arguments):
        result = advance(tree, *arguments)
        sizes.append(tree.size)
        return result

    with monkeypatch.context() as patched:
        patched.setattr(NodeTree, "advance", record_size)
        run = generate(
            Table(lambda prefix: [2, 1], 2),
            prompts,
            sampler=sampler,
            verifier=verifier,
            max_new_tokens=6,
            num_samples=3,
            batch_size=16,
            memory=memory,
        )
    return run, max(sizes)


@pytest.mark.parametrize("memory", [8])
@pytest.mark.parametrize(
    "sampler",
    [Backtracking(2, 2), SequentialMonteCarlo(2)],
    ids=lambda sampler: type(sampler).__name__,
)
def test_only_the_nodes_of_finished_prompts_are_removed(monkeypatch, sampler, memory):
    # Some prompts are repeated long after their first samples have finished.
    prompts = [*PROMPTS, *PROMPTS[:60:6]]

    def value(prefix):
        return sum(prefix) % 5 != 0 or len(prefix) < 11

    run, nodes = run_of_many_prompts(monkeypatch, sampler, prompts, value, memory)
    with monkeypatch.context() as patched:
        patched.setattr(NodeTree, "forget", lambda *_: None)
        complete, all_nodes = run_of_many_prompts(monkeypatch, sampler, prompts, value, memory)
    assert 2 * nodes < all_nodes
    assert run.sequences() == complete.sequences()
    assert run.stopped == complete.stopped
    for name in ("queries", "distinct_queries", "positions", "verifier_calls", "accepted", "log_prob"):
        assert torch.equal(getattr(run, name), getattr(complete, name)), name
    assert run.total.forward_passes == complete.total.forward_passes
