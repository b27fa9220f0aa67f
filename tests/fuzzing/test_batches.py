"""Compiled bookkeeping of a batch, asked and moved at random: an error of one line, or what a list of lists gives."""

import math

import torch
from hypothesis import strategies as st

from fuzzing.spoiling import INDEX_FAULTS, Draw, answered, cases
from trialogue.data import Table
from trialogue.samplers.prefix.batch.batch import Batch
from trialogue.samplers.prefix.moves import Moves

VOCAB, CAPACITY = 3, 5
ORACLE = Table(
    lambda prefix: [1 + (5 * len(prefix) + 3 * sum(prefix) + token) % 7 for token in range(VOCAB)], VOCAB
)


def batch_of(draw: Draw) -> tuple[Batch, list[list[int]]]:
    """A batch of a few rows, and their tokens."""
    rows = draw.whole(1, 5)
    batch = Batch(ORACLE, rows, CAPACITY, memory=draw.whole(1, 9), scored=True)
    lengths = draw.indices((rows,), CAPACITY + 1)
    tokens = draw.indices((rows, CAPACITY), VOCAB) * (torch.arange(CAPACITY) < lengths[:, None])
    batch.add(tokens, lengths, torch.zeros_like(lengths), torch.full_like(lengths, CAPACITY))
    return batch, [row[:length] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]


def distribution(prefix: list[int]) -> torch.Tensor:
    """The oracle's log-probabilities after `prefix`."""
    tokens = torch.tensor([prefix], dtype=torch.int64).view(1, -1)
    return ORACLE.next_log_probs(tokens, torch.tensor([len(prefix)]))[0]


def are_laws(found: torch.Tensor, prefixes: list[list[int]]) -> bool:
    """Whether these are the distributions (n, vocab) after the prefixes."""
    expected = [distribution(prefix) for prefix in prefixes]
    return found.shape == (len(prefixes), VOCAB) and all(
        torch.allclose(have.double(), want.double()) for have, want in zip(found, expected, strict=True)
    )


@cases(INDEX_FAULTS, st.sampled_from(["rows", "lengths", "both", "own lengths"]))
def test_laws_of_rows(draw: Draw, where: str) -> None:
    batch, held = batch_of(draw)
    rows = draw.indices((draw.whole(1, 4),), len(held))
    lengths = torch.tensor([draw.whole(0, len(held[row])) for row in rows.tolist()])
    if where != "lengths":
        rows = draw.spoiled(rows, len(held))
    if where in ("lengths", "both"):
        lengths = draw.spoiled(lengths, CAPACITY + 1)
    own = where == "own lengths"
    queries = batch.meter.queries.clone()
    found = answered(lambda: batch.log_probs(rows, None if own else lengths))
    if draw.wrong in ("nothing", "strided"):
        assert found is not None
    if found is None:
        assert torch.equal(batch.meter.queries, queries)
        return
    cut = [len(held[row]) for row in rows.tolist()] if own else lengths.tolist()
    assert are_laws(found, [held[row][:length] for row, length in zip(rows.tolist(), cut, strict=True)])


@cases((*INDEX_FAULTS, "other kept", "other token"), st.sampled_from(["source", "length", "token"]))
def test_moves_of_rows(draw: Draw, where: str) -> None:
    batch, held = batch_of(draw)
    every = torch.arange(len(held))
    batch.log_probs(every)
    source = draw.indices((len(held),), len(held)) if draw.whole(0, 1) else every
    length = torch.tensor([draw.whole(0, len(held[row])) for row in source.tolist()])
    token = draw.indices((len(held),), VOCAB + 1) - 1
    token[length == CAPACITY] = -1
    if draw.wrong == "other kept":
        length[0] = draw.whole(-2, CAPACITY + 2)
    if draw.wrong == "other token":
        token[0] = draw.whole(-3, VOCAB + 1)
    moves = Moves(source, length, token, torch.zeros(len(held), dtype=torch.bool))
    size = {"source": len(held), "length": CAPACITY + 1, "token": VOCAB}[where]
    moves = moves._replace(**{where: draw.spoiled(getattr(moves, where), size)})
    done = answered(lambda: batch.apply(moves) or True)
    if draw.wrong in ("nothing", "strided"):
        assert done
    if not done:
        return
    expected = [
        held[row][:kept] + ([new] if new >= 0 else [])
        for row, kept, new in zip(*(numbers.tolist() for numbers in moves[:3]), strict=True)
    ]
    assert batch.lengths.tolist() == list(map(len, expected))
    assert [row[: len(want)] for row, want in zip(batch.tokens.tolist(), expected, strict=True)] == expected
    nodes = batch.node.tolist()
    for one, other in ((a, b) for a in range(len(nodes)) for b in range(a)):
        assert (nodes[one] == nodes[other]) == (expected[one] == expected[other])
    assert are_laws(batch.log_probs(every), expected)
    # Scores are those of rows that append to a prefix which was asked about.
    for row, new in enumerate(moves.token.tolist()):
        parent = int(moves.source[row])
        if new >= 0 and int(moves.length[row]) == len(held[parent]):
            gained = batch.token_log_probs(every)[row, len(held[parent])]
            assert math.isclose(float(gained), float(distribution(held[parent])[new]), abs_tol=1e-9)


@cases(INDEX_FAULTS, st.sampled_from(["rows", "tokens"]))
def test_children_of_rows(draw: Draw, where: str) -> None:
    batch, held = batch_of(draw)
    growing = [row for row, tokens in enumerate(held) if len(tokens) < CAPACITY]
    if not growing:
        return
    rows = torch.tensor(growing)[draw.indices((draw.whole(1, 4),), len(growing))]
    tokens = draw.indices((len(rows),), VOCAB)
    if where == "rows":
        rows = draw.spoiled(rows, len(held))
    else:
        tokens = draw.spoiled(tokens, VOCAB)
    children = answered(lambda: batch.peek(tokens, rows))
    if draw.wrong in ("nothing", "strided"):
        assert children is not None
    if children is not None and len(rows):
        expected = [[*held[row], token] for row, token in zip(rows.tolist(), tokens.tolist(), strict=True)]
        assert are_laws(children.log_probs(torch.arange(len(rows))), expected)
