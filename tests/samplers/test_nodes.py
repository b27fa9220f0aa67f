"""Ids of prefixes: equal ids are equal prefixes of the same prompt, however many there are."""

import pytest
import torch

from trialogue.data.table import Table
from trialogue.samplers import (
    Backtracking,
    SequentialMonteCarlo,
    TokenwiseRejection,
    generate,
)
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.batch.tree import Memory, NodeTree
from trialogue.testing.trees import RandomTree
from trialogue.verifiers.function import FunctionVerifier

ROWS, CAPACITY, VOCAB = 4096, 12, 5


def test_equal_sequences_of_different_prompts_are_judged_apart():
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
        # All 14 prefixes of the empty prompt and all 6 of the other: none is taken for the other's.
        assert len(judged) == 14 + 6


def test_only_what_was_evaluated_is_remembered_in_a_bounded_number_of_bytes():
    vocab, places = 1000, 5
    oracle = Table(
        lambda prefix: [1 + (7 * len(prefix) + sum(prefix) + token) % 11 for token in range(vocab)], vocab
    )
    batch = Batch(oracle, 1, CAPACITY)
    one = torch.ones(1, dtype=torch.int64)
    batch.add(torch.zeros(1, CAPACITY, dtype=torch.int64), one, one, one * CAPACITY)
    batch.knowledge.memory = memory = Memory(batch.knowledge.tree, 100, most_bytes=places * vocab * 8 + 7)
    children = batch.peek(torch.arange(vocab), torch.zeros(vocab, dtype=torch.int64))
    asked = torch.arange(8)
    first = children.log_probs(asked)
    assert batch.knowledge.tree.size > vocab
    assert memory._features is not None
    assert len(memory._features) == len(memory.nodes) == places
    before = batch.meter.positions.clone()
    again = children.log_probs(asked)
    assert torch.equal(first, again)
    # The five that were evaluated last are still there.
    assert int(batch.meter.passes) == 2
    assert memory.nodes.tolist() != [-1] * places
    assert int((batch.meter.positions - before).sum()) == 8 - places


PROMPTS = [tuple(map(int, f"{number:08b}")) for number in range(120)]


def run_of_many_prompts(monkeypatch, sampler, prompts, verifier, memory):
    """Samples, and the most nodes that there were at once."""
    sizes = []
    advance = NodeTree.advance

    def noted(tree, *arguments):
        answer = advance(tree, *arguments)
        sizes.append(tree.size)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(NodeTree, "advance", noted)
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
def test_prompts_that_are_over_are_forgotten_and_nothing_else(monkeypatch, sampler, memory):
    # Some prompts come again, when others have long been over.
    prompts = [*PROMPTS, *PROMPTS[:60:6]]

    def value(prefix):
        return sum(prefix) % 5 != 0 or len(prefix) < 11

    run, nodes = run_of_many_prompts(monkeypatch, sampler, prompts, value, memory)
    with monkeypatch.context() as patched:
        patched.setattr(NodeTree, "forget", lambda *_: None)
        whole, all_nodes = run_of_many_prompts(monkeypatch, sampler, prompts, value, memory)
    assert 2 * nodes < all_nodes
    assert run.sequences() == whole.sequences()
    assert run.stopped == whole.stopped
    for name in ("queries", "distinct_queries", "positions", "verifier_calls", "accepted", "log_prob"):
        assert torch.equal(getattr(run, name), getattr(whole, name)), name
    assert run.total.forward_passes == whole.total.forward_passes
