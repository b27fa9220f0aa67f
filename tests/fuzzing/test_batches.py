"""Fuzz tests of batches: each call raises an error of one line or agrees with lists of lists."""

import math

import torch
from hypothesis import strategies as st

from fuzzing.faults import INDEX_FAULTS, Draw, fuzz, result_or_none
from trialogue.data import Table
from trialogue.samplers.prefix.batch.batch import Batch
from trialogue.samplers.prefix.contract.moves import Moves

VOCAB, CAPACITY = 3, 5
ORACLE = Table(
    lambda prefix: [1 + (5 * len(prefix) + 3 * sum(prefix) + token) % 7 for token in range(VOCAB)], VOCAB
)


def make_batch(draw: Draw) -> tuple[Batch, list[list[int]]]:
    """Return a batch of a few rows and their tokens."""
    rows = draw.integer(1, 5)
    batch = Batch(ORACLE, rows, CAPACITY, memory=draw.integer(1, 9), scored=True)
    lengths = draw.indices((rows,), CAPACITY + 1)
    tokens = draw.indices((rows, CAPACITY), VOCAB) * (torch.arange(CAPACITY) < lengths[:, None])
    batch.add(tokens, lengths, torch.zeros_like(lengths), torch.full_like(lengths, CAPACITY))
    return batch, [row[:length] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]


def distribution(prefix: list[int]) -> torch.Tensor:
    """Return the oracle's log-probabilities after `prefix`."""
    tokens = torch.tensor([prefix], dtype=torch.int64).view(1, -1)
    return ORACLE.next_log_probs(tokens, torch.tensor([len(prefix)]))[0]


def are_distributions(found: torch.Tensor, prefixes: list[list[int]]) -> bool:
    """Return whether `found` (n, vocab) holds the distributions after the prefixes."""
    expected = [distribution(prefix) for prefix in prefixes]
    return found.shape == (len(prefixes), VOCAB) and all(
        torch.allclose(have.double(), want.double()) for have, want in zip(found, expected, strict=True)
    )


@fuzz(INDEX_FAULTS, st.sampled_from(["rows", "lengths", "both", "own lengths"]))
def test_distributions_of_rows_are_correct(draw, where):
    batch, contents = make_batch(draw)
    rows = draw.indices((draw.integer(1, 4),), len(contents))
    lengths = torch.tensor([draw.integer(0, len(contents[row])) for row in rows.tolist()])
    if where != "lengths":
        rows = draw.with_index_fault(rows, len(contents))
    if where in ("lengths", "both"):
        lengths = draw.with_index_fault(lengths, CAPACITY + 1)
    own = where == "own lengths"
    queries = batch.meter.queries.clone()
    valid = draw.fault in ("nothing", "strided")
    found = result_or_none(lambda: batch.log_probs(rows, None if own else lengths), valid)
    if found is None:
        assert torch.equal(batch.meter.queries, queries)
        return
    cut = [len(contents[row]) for row in rows.tolist()] if own else lengths.tolist()
    assert are_distributions(
        found, [contents[row][:length] for row, length in zip(rows.tolist(), cut, strict=True)]
    )


@fuzz((*INDEX_FAULTS, "other kept", "other token"), st.sampled_from(["source", "length", "token"]))
def test_moved_rows_hold_the_correct_tokens(draw, where):
    batch, contents = make_batch(draw)
    every = torch.arange(len(contents))
    batch.log_probs(every)
    source = draw.indices((len(contents),), len(contents)) if draw.integer(0, 1) else every
    length = torch.tensor([draw.integer(0, len(contents[row])) for row in source.tolist()])
    token = draw.indices((len(contents),), VOCAB + 1) - 1
    token[length == CAPACITY] = -1
    if draw.fault == "other kept":
        length[0] = draw.integer(-2, CAPACITY + 2)
    if draw.fault == "other token":
        token[0] = draw.integer(-3, VOCAB + 1)
    moves = Moves(source, length, token, torch.zeros(len(contents), dtype=torch.bool))
    size = {"source": len(contents), "length": CAPACITY + 1, "token": VOCAB}[where]
    moves = moves._replace(**{where: draw.with_index_fault(getattr(moves, where), size)})
    if not result_or_none(lambda: batch.apply(moves) or True, draw.fault in ("nothing", "strided")):
        return
    expected = [
        contents[row][:kept] + ([new] if new >= 0 else [])
        for row, kept, new in zip(*(numbers.tolist() for numbers in moves[:3]), strict=True)
    ]
    assert batch.lengths.tolist() == list(map(len, expected))
    assert [row[: len(want)] for row, want in zip(batch.tokens.tolist(), expected, strict=True)] == expected
    nodes = batch.node.tolist()
    for one, other in ((a, b) for a in range(len(nodes)) for b in range(a)):
        assert (nodes[one] == nodes[other]) == (expected[one] == expected[other])
    assert are_distributions(batch.log_probs(every), expected)
    # A score is defined for a row that appends to a prefix with a computed distribution.
    for row, new in enumerate(moves.token.tolist()):
        parent = int(moves.source[row])
        if new >= 0 and int(moves.length[row]) == len(contents[parent]):
            gained = batch.token_log_probs(every)[row, len(contents[parent])]
            assert math.isclose(float(gained), float(distribution(contents[parent])[new]), abs_tol=1e-9)


@fuzz(INDEX_FAULTS, st.sampled_from(["rows", "tokens"]))
def test_distributions_of_children_are_correct(draw, where):
    batch, contents = make_batch(draw)
    growing = [row for row, tokens in enumerate(contents) if len(tokens) < CAPACITY]
    if not growing:
        return
    rows = torch.tensor(growing)[draw.indices((draw.integer(1, 4),), len(growing))]
    tokens = draw.indices((len(rows),), VOCAB)
    if where == "rows":
        rows = draw.with_index_fault(rows, len(contents))
    else:
        tokens = draw.with_index_fault(tokens, VOCAB)
    children = result_or_none(lambda: batch.peek(tokens, rows), draw.fault in ("nothing", "strided"))
    if children is not None and len(rows):
        expected = [
            [*contents[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)
        ]
        assert are_distributions(children.log_probs(torch.arange(len(rows))), expected)
