"""The prefix tree: ids of prefixes, removal of leaves, and samples that do not depend on removed nodes."""

import pytest
import torch

from batches import batch_of
from trialogue.data.table import Table
from trialogue.oracles import PrefixOracle
from trialogue.samplers import Backtracking, SequentialMonteCarlo, TokenwiseRejection, ValueGuided, generate
from trialogue.samplers.prefix.batch import batch as batches
from trialogue.samplers.prefix.batch.tree import FeatureCache, NodeTable, NodeTree
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.testing.trees import RandomTree
from trialogue.verifiers.functions.function import FunctionVerifier

TREE = RandomTree(131, vocab=3, horizon=7)


class Coins(PrefixOracle):
    """An oracle with equal probabilities that counts its rows."""

    def __init__(self, vocab_size=2):
        self.vocab_size, self.rows = vocab_size, 0

    def next_log_probs(self, tokens, lengths):
        self.rows += len(lengths)
        return torch.zeros(len(lengths), self.vocab_size, dtype=torch.float64).log_softmax(1)


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(batches, "_MIN_NODE_LIMIT", 40)
    monkeypatch.setattr(batches, "_NODES_PER_CACHED_NODE", 1)


@pytest.mark.parametrize(
    "sampler", [ValueGuided(), ValueGuided(momentum=1.0), TokenwiseRejection()], ids=repr
)
def test_removed_nodes_do_not_change_samples(sampler, request):
    settings = {"sampler": sampler, "verifier": TREE.value, "num_samples": 6, "batch_size": 4, "seed": 2}
    unbounded = generate(TREE.table(), **settings)
    request.getfixturevalue("narrow")
    bounded = generate(TREE.table(), memory=10, **settings)
    assert bounded.sequences() == unbounded.sequences()
    assert torch.equal(bounded.queries, unbounded.queries)
    assert torch.equal(bounded.log_prob, unbounded.log_prob)
    assert bounded.total.verifier_calls >= unbounded.total.verifier_calls
    if sampler != TokenwiseRejection():
        assert bounded.total.verifier_calls > unbounded.total.verifier_calls


def test_leaves_are_removed_before_the_required_path():
    tree = NodeTree(2)
    numbers = NodeTable(tree, -1, torch.int64)
    tokens = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    three, zero = torch.full((4,), 3), torch.zeros(4, dtype=torch.int64)
    path = tree.paths(tokens, three, zero)
    numbers.values[: tree.size] = torch.arange(tree.size)
    # The nodes are the root, 0, 00, 000, 001, 01, 010, 1, 10 and 100, in this order.
    assert tree.shrink(10, path[0]) is None
    new = tree.shrink(9, path[0])
    # Half of the nine nodes may stay, and only the path of the first sequence does.
    assert [node for node, kept in enumerate((new >= 0).tolist()) if kept] == [0, 1, 2, 3]
    assert numbers.values[: tree.size].tolist() == [0, 1, 2, 3]
    again = tree.paths(tokens[:1], three[:1], zero[:1])
    assert again.tolist() == [[0, 1, 2, 3]]
    assert tree.size == 4


def test_the_oldest_leaves_are_removed_first():
    tree = NodeTree(2)
    tokens = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    tree.paths(tokens, torch.full((4,), 3), torch.zeros(4, dtype=torch.int64))
    new = tree.shrink(8, torch.zeros(0, dtype=torch.int64))
    # Of ten nodes four stay. The leaves 000, 001, 010, 100 go first, then the oldest new leaves 00 and 01.
    assert [node for node, kept in enumerate((new >= 0).tolist()) if kept] == [0, 1, 7, 8]


def test_a_node_visited_again_is_evaluated_once():
    oracle = Coins()
    run = generate(
        oracle,
        sampler=ValueGuided(stop_at_leaf=False),
        verifier=lambda x: 1.0,
        max_new_tokens=4,
        max_steps=800,
    )
    inner = 2**4 - 1
    assert oracle.rows == inner
    assert run.distinct_queries.tolist() == [inner]
    assert run.total.forward_passes == inner
    assert int(run.queries) > 200


def test_moves_after_a_removal_use_the_correct_prefix(narrow):
    batch = batch_of(TREE.table(), [()], 7, memory=1)
    stay = torch.zeros(1, dtype=torch.bool)
    for number in range(300):
        back, token = int(batch.lengths) >= 5, torch.tensor([number % 3])
        kept = batch.lengths - 4 if back else batch.lengths
        before = batch.log_probs(torch.arange(1), kept).clone()
        batch.apply(Moves(torch.arange(1), kept, token, stay))
        batch.shrink()
        held = tuple(batch.tokens[0, : int(kept)].tolist())
        assert torch.allclose(before[0].exp(), torch.tensor(TREE.conditional(held), dtype=torch.float64))
        assert batch.shared.tree.size <= 41


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
    "sampler", [Backtracking(2, 2), SequentialMonteCarlo(2)], ids=lambda sampler: type(sampler).__name__
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
