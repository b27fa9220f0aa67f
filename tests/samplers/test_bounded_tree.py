"""The bounded prefix tree: leaves are removed first, and samples do not depend on removed nodes."""

import pytest
import torch

from batches import batch_of
from trialogue.oracles import PrefixOracle
from trialogue.samplers import TokenwiseRejection, ValueGuided, generate
from trialogue.samplers.prefix.batch import batch as batches
from trialogue.samplers.prefix.batch.tree import NodeTable, NodeTree
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.testing.trees import RandomTree

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
    "sampler",
    [ValueGuided(), ValueGuided(momentum=1.0), TokenwiseRejection()],
    ids=repr,
)
def test_removed_nodes_do_not_change_samples(sampler, request):
    settings = {"sampler": sampler, "verifier": TREE.value, "num_samples": 12, "batch_size": 4, "seed": 2}
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
        max_steps=2000,
    )
    inner = 2**4 - 1
    assert oracle.rows == inner
    assert run.distinct_queries.tolist() == [inner]
    assert run.total.forward_passes == inner
    assert int(run.queries) > 500


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
