"""Compare Dyck distributions with enumeration of the grammar and with printed formulas, and reject mutants."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from dyck_enumeration import DISTRIBUTIONS, String, prefixes, strings, words

from refusals import expect_error
from trialogue.data.dyck.kernels import DyckError
from trialogue.data.dyck.language import Dyck
from trialogue.oracles import are_complete, pad_sequences
from trialogue.randomness import numpy_generator


def parse(string: String, dyck: Dyck, eos: int | None) -> tuple[int, DyckError]:
    """Return the first error of a finished string, found with a stack."""
    stack: list[int] = []
    bound = dyck.max_depth or 10**9
    for i, token in enumerate(string):
        if token == eos:
            return (-1, DyckError.NONE) if i == dyck.length else (i, DyckError.END_INCORRECT)
        if i >= dyck.length:
            return i, DyckError.END_INCORRECT
        if not 0 <= token < dyck.vocab_size:
            return i, DyckError.NOT_A_BRACKET
        if token % 2 == 0:
            stack.append(token)
            if len(stack) > bound:
                return i, DyckError.MAX_STACK_DEPTH_EXCEEDED
            if dyck.complete and len(stack) > dyck.length - i - 1:
                return i, DyckError.STACK_DEPTH_EXCEEDS_REMAINING_LENGTH
        elif not stack:
            return i, DyckError.STACK_UNDERFLOW
        elif stack.pop() != token - 1:
            return i, DyckError.INCORRECT_CLOSING_BRACKET
    return (-1, DyckError.NONE) if len(string) == dyck.length else (len(string), DyckError.END_INCORRECT)


def balanced_formula(string: String, length: int, p: float, q: float, *, literal: bool = False) -> float:
    """Return equations 3.3 and 3.4. With `literal`, use the printed exponent d <= D - i instead of d < D - i."""
    value, depth = 1.0, 0
    for i, token in enumerate(string, 1):
        depth += 1 - 2 * (token % 2)
        if token % 2 == 0:
            value *= (p if token == 0 else 1 - p) * (1.0 if depth == 1 else q)
        elif depth < length - i or (literal and depth == length - i):
            value *= 1 - q
    return value


def bounded_formula(string: String, types: int, max_depth: int, q: float) -> float:
    """Return equation 2.39."""
    value, depth = 1.0, 0
    for token in string:
        depth += 1 - 2 * (token % 2)
        if token % 2 == 0:
            value *= (1.0 if depth == 1 else q) / types
        elif depth < max_depth - 1:
            value *= 1 - q
    return value


def assert_same(found: object, expected: object) -> None:
    """Assert equality without pytest's line-by-line comparison, because mutants differ in thousands of entries."""
    same = found == expected
    assert same


def check_parser(dyck: Dyck) -> None:
    """Check viability, membership and first errors of all strings against their definitions."""
    types = dyck.vocab_size // 2
    viable = prefixes(dyck.length, types, dyck.max_depth, dyck.complete)
    every, tokens, lengths = strings(types, 8 if types < 3 else 6)
    first = []
    for s in every:
        wrong = next((n - 1 for n in range(1, len(s) + 1) if s[:n] not in viable), -1)
        first.append(len(s) if wrong < 0 and len(s) < dyck.length else wrong)
    assert_same(dyck.first_error(tokens, lengths).tolist(), first)
    assert_same(dyck.is_prefix(tokens, lengths).tolist(), [s in viable for s in every])
    complete = [s in viable and len(s) == dyck.length for s in every]
    assert_same(dyck.is_member(tokens, lengths).tolist(), complete)
    assert_same(dyck.errors(tokens, lengths).kind.tolist(), [parse(s, dyck, None)[1] for s in every])


def check_distribution(dyck: Dyck) -> None:
    """Check that probabilities sum to 1 at every length and equal products of normalized next-token probabilities."""
    types = dyck.vocab_size // 2
    viable = prefixes(dyck.length, types, dyck.max_depth, dyck.complete)
    every, tokens, lengths = strings(types, dyck.length if types < 3 else 6)
    log_prob = dyck.prefix_log_prob(tokens, lengths)
    assert_same(torch.isfinite(log_prob).tolist(), [s in viable for s in every])
    totals = torch.zeros(dyck.length + 1, dtype=torch.float64).index_add_(0, lengths, log_prob.exp())
    torch.testing.assert_close(totals, torch.ones_like(totals), rtol=0, atol=1e-12)
    distribution = dyck.next_log_probs(tokens, lengths)
    torch.testing.assert_close(
        distribution.exp().sum(1), torch.ones(len(distribution)).double(), rtol=0, atol=1e-12
    )
    index = {s: i for i, s in enumerate(every)}
    grown = torch.tensor([index[s] for s in every if s])
    parent = torch.tensor([index[s[:-1]] for s in every if s])
    last = torch.tensor([s[-1] for s in every if s])
    chain = log_prob[parent] + distribution[parent, last]
    torch.testing.assert_close(chain, log_prob[grown], rtol=0, atol=1e-12)
    stopped = torch.tensor([s not in viable or len(s) == dyck.length for s in every])
    assert torch.equal(
        distribution[stopped], torch.full_like(distribution[stopped], -math.log(dyck.vocab_size))
    )


@pytest.mark.parametrize("dyck", DISTRIBUTIONS, ids=repr)
def test_parser_and_distribution_agree_with_enumeration(dyck):
    check_parser(dyck)
    check_distribution(dyck)


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.5), (0.8, 0.5), (0.35, 0.9)])
@pytest.mark.parametrize(("length", "count"), [(4, 8), (6, 40), (8, 224)])
def test_balanced_distribution_is_the_corrected_formula(length, count, p, q):
    assert len(words(length, 2, length)) == count
    every = sorted(prefixes(length, 2, None, True))
    expected = [balanced_formula(s, length, p, q) for s in every]
    found = Dyck(length, (p, 1 - p), q).prefix_log_prob(*pad_sequences(every)).exp()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(
            found, [balanced_formula(s, length, p, q, literal=True) for s in every], rtol=1e-12
        )


@pytest.mark.parametrize(
    ("types", "max_depth", "length", "q"), [(2, 3, 7, 0.5), (2, 4, 6, 0.3), (3, 2, 6, 0.7), (2, 1, 6, 0.4)]
)
def test_bounded_distribution_is_equation_2_39(types, max_depth, length, q):
    every = sorted(prefixes(length, types, max_depth, False))
    dyck = Dyck(length, (1 / types,) * types, q, max_depth, complete=False)
    found = dyck.prefix_log_prob(*pad_sequences(every)).exp()
    np.testing.assert_allclose(found, [bounded_formula(s, types, max_depth, q) for s in every], rtol=1e-12)
    assert sum(bounded_formula(s, types, max_depth, q) for s in every if len(s) == length) == pytest.approx(1)


def test_errors_of_corrupted_strings():
    rng = numpy_generator(0, "corrupted")
    eos, seen = 5, set()
    for dyck in (Dyck(), Dyck(max_depth=6), Dyck(31, (0.5, 0.5), 0.5, 6, complete=False)):
        x = dyck.sample(600, seed=3).numpy()
        tokens = np.concatenate([x, np.full((600, 1), eos), np.zeros((600, 2), np.int64)], 1)
        tokens[np.arange(600), rng.integers(0, dyck.length + 1, 600)] = rng.integers(-1, 7, 600)
        lengths = rng.integers(20, tokens.shape[1] + 1, 600)
        for cut in (None, lengths):
            rows = [tuple(row[:n]) for row, n in zip(tokens.tolist(), lengths, strict=True)]
            if cut is None:
                rows = [tuple(row) for row in tokens.tolist()]
            else:
                # With lengths, tokens after an end of sequence count, but `parse` ignores them.
                rows = [r[: r.index(eos) + 1] if eos in r else r for r in rows]
                cut = torch.tensor([len(r) for r in rows])
            found = dyck.errors(torch.tensor(tokens), cut, eos)
            expected = [parse(r, dyck, eos) for r in rows]
            assert_same(found.position.tolist(), [position for position, _ in expected])
            assert_same(found.kind.tolist(), [kind for _, kind in expected])
            assert torch.equal(dyck.is_member(torch.tensor(tokens), cut, eos), found.position < 0)
            seen |= set(found.kind.tolist())
    assert seen == set(DyckError)
    beyond = Dyck(2).errors(torch.tensor([[0, 1, 5, 0], [0, 1, 5, 5]]), torch.tensor([4, 3]), eos)
    assert beyond.position.tolist() == [3, -1]
    assert beyond.kind.tolist() == [DyckError.END_INCORRECT, DyckError.NONE]


def decoding(rows: list[String], limit: int, vocab_size: int, eos: int | None) -> SimpleNamespace:
    tokens, lengths = pad_sequences(rows, limit)
    limits = torch.full_like(lengths, limit)
    complete = are_complete(tokens, lengths, limits, eos)
    return SimpleNamespace(
        tokens=tokens, lengths=lengths, limit=limits, complete=complete, eos=eos, vocab_size=vocab_size
    )


def check_verifier(dyck: Dyck, limit: int, vocab_size: int, eos: int | None) -> None:
    """Check the values of all leaves by definition, and of all prefixes by the leaves that continue them."""
    types = dyck.vocab_size // 2
    members = {
        s for s in prefixes(dyck.length, types, dyck.max_depth, dyck.complete) if len(s) == dyck.length
    }
    value: dict[String, float] = {}

    def visit(node: String) -> float:
        ended = bool(node) and node[-1] == eos
        if ended or len(node) == limit:
            value[node] = float((node[:-1] if ended else node) in members)
        else:
            value[node] = max([visit((*node, t)) for t in range(vocab_size)])
        return value[node]

    visit(())
    nodes = list(value)
    state = decoding(nodes, limit, vocab_size, eos)
    every = torch.arange(len(nodes))
    assert_same(dyck.values(state, every).tolist(), list(value.values()))
    inner = every[~state.complete]
    expected = [[value[(*nodes[i], t)] for t in range(vocab_size)] for i in inner]
    assert_same(dyck.children(state, inner.flip(0)).flip(0).tolist(), expected)


@pytest.mark.parametrize("limit", [3, 4, 5, 6])
@pytest.mark.parametrize(("vocab_size", "eos"), [(4, None), (5, None), (5, 4), (6, 5)])
def test_verifier_is_perfect(limit, vocab_size, eos):
    check_verifier(Dyck(4), limit, vocab_size, eos)


def test_verifier_of_bounded_prefixes():
    check_verifier(Dyck(5, (0.5, 0.5), 0.5, max_depth=2, complete=False), 6, 5, 4)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("length", lambda: Dyck(0)),
        ("length", lambda: Dyck(7)),
        ("type_probs", lambda: Dyck(8, ())),
        ("type_probs", lambda: Dyck(8, (0.0, 1.0))),
        ("type_probs", lambda: Dyck(8, (0.5, 0.5001))),
        ("open_prob", lambda: Dyck(8, open_prob=1.0)),
        ("max_depth", lambda: Dyck(8, max_depth=0)),
        ("lengths", lambda: Dyck(8).sample_prompts(3)),
        ("lengths", lambda: Dyck(8).is_prefix(torch.zeros(2, 8).long(), torch.tensor([3, 9]))),
        ("x", lambda: Dyck(8).log_prob(torch.zeros(2, 7).long())),
        ("x", lambda: Dyck(8).depth(torch.full((2, 8), 4))),
        ("tokens", lambda: Dyck(8).is_member(torch.zeros(2, 8))),
        ("tokens", lambda: Dyck(8).first_error(torch.zeros(8).long(), eos=4)),
        ("eos", lambda: Dyck(8).is_member(torch.zeros(2, 8).long(), eos=3)),
        ("decoding.vocab_size", lambda: Dyck(8).children(decoding([()], 8, 3, None), torch.tensor([0]))),
    ],
)
def test_invalid_input_is_reported(field, call):
    assert expect_error("", call).field == field
