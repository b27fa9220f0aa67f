"""Fuzz tests of bracket strings: each call raises an error of one line or returns the correct result."""

import math

import torch
from hypothesis import strategies as st

from fuzzing.faults import INDEX_FAULTS, fuzz, result_or_none
from trialogue.data.dyck.kernels import DyckError
from trialogue.data.dyck.language import Dyck
from trialogue.data.dyck.states import innermost_types
from trialogue.data.dyck.words import DyckWords

TYPES = (0.3, 0.7)
LANGUAGES = [
    Dyck(6, TYPES),
    Dyck(6, TYPES, 0.4, max_depth=2),
    Dyck(5, TYPES, 0.6, max_depth=3, complete=False),
    Dyck(1, (1.0,), complete=False),
]
WORDS = DyckWords(6, TYPES, max_depth=2)


def log_prob(language: Dyck, string: list[int]) -> float:
    """Return the log-probability that a string begins with `string`, bracket by bracket."""
    open_types: list[int] = []
    total, deepest = 0.0, language.max_depth or language.length + 1
    for place, token in enumerate(string):
        left = language.length - place if language.complete else language.length + 1
        ceiling = min(deepest, left)
        if place >= language.length or not 0 <= token < language.vocab_size:
            return -math.inf
        opening = 1.0 if not open_types else 0.0 if len(open_types) == ceiling else language.open_prob
        if token % 2 == 0:
            chance = opening * language.type_probs[token // 2]
            open_types.append(token // 2)
        else:
            chance = 1 - opening if open_types and open_types.pop() == token // 2 else 0.0
        if not chance:
            return -math.inf
        total += math.log(chance)
    return total


def partners(string: list[int]) -> tuple[list[int], list[int]]:
    """Return the position of each bracket's partner and the innermost open type after each bracket."""
    stack: list[int] = []
    partner, top = [-1] * len(string), []
    for place, token in enumerate(string):
        if token % 2 == 0:
            stack.append(place)
        elif stack:
            opener = stack.pop()
            if string[opener] // 2 == token // 2:
                partner[place], partner[opener] = opener, place
        top.append(string[stack[-1]] // 2 if stack else -1)
    return partner, top


@fuzz(INDEX_FAULTS, st.sampled_from(LANGUAGES), st.sampled_from(["tokens", "lengths", "both"]))
def test_prefixes_have_the_correct_log_probability(draw, language, where):
    rows, width = draw.integer(1, 5), draw.integer(0, language.length + 2)
    # Half of the strings are in the language, so that not all fail at their first token.
    tokens = draw.indices((rows, width), language.vocab_size + 1)
    valid_strings = language.sample(rows, draw.integer(0, 99))[:, :width]
    if draw.integer(0, 1):
        tokens[:, : valid_strings.shape[1]] = valid_strings
    lengths = draw.indices((rows,), width + 1)
    if where != "lengths":
        tokens = draw.with_index_fault(tokens, language.vocab_size)
    if where != "tokens":
        lengths = draw.with_index_fault(lengths, width + 1)
    valid = draw.fault in ("nothing", "strided", "int32")
    found = result_or_none(lambda: language.prefix_log_prob(tokens, lengths), valid)
    if found is None:
        return
    assert found.shape == (len(tokens),)
    for row, length, actual in zip(tokens.tolist(), lengths.tolist(), found.tolist(), strict=True):
        expected = log_prob(language, row[:length])
        assert actual == expected or abs(actual - expected) < 1e-9
    assert torch.equal(language.is_prefix(tokens, lengths), found > -math.inf)
    distributions = language.next_log_probs(tokens, lengths)
    assert bool(((distributions.exp().sum(1) - 1).abs() < 1e-9).all())


@fuzz(
    INDEX_FAULTS,
    st.sampled_from(LANGUAGES),
    st.one_of(st.none(), st.integers(-2, 8), st.sampled_from([2**62, 2**63, 2**70, -(2**70), 4.0])),
)
def test_errors_of_complete_strings_are_correct(draw, language, eos):
    shape = (draw.integer(0, 4), draw.integer(0, language.length + 2))
    tokens = draw.with_index_fault(draw.indices(shape, language.vocab_size + 2), language.vocab_size + 2)
    found = result_or_none(lambda: language.errors(tokens, eos=eos))
    if found is None:
        return
    assert found.position.shape == found.kind.shape == (len(tokens),)
    assert set(found.kind.tolist()) <= {int(kind) for kind in DyckError}
    for row, position in zip(tokens.tolist(), found.position.tolist(), strict=True):
        string = row[: row.index(eos)] if eos in row else row
        is_complete = len(string) == language.length and log_prob(language, string) > -math.inf
        assert (position < 0) == is_complete
        if not is_complete:
            assert log_prob(language, string[:position]) > -math.inf


@fuzz(INDEX_FAULTS, st.sampled_from(LANGUAGES))
def test_partners_of_brackets_are_correct(draw, language):
    shape = (draw.integer(0, 4), draw.integer(0, 9))
    x = draw.with_index_fault(draw.indices(shape, language.vocab_size), language.vocab_size)
    found = result_or_none(lambda: language.matching(x), draw.fault in ("nothing", "strided", "int32"))
    if found is not None:
        assert found.shape == x.shape
        assert found.tolist() == [partners(row)[0] for row in x.tolist()]
    top = result_or_none(lambda: innermost_types(x), draw.fault not in ("float64", "bool", "flat", "deep"))
    if top is not None:
        assert top.tolist() == [partners(row)[1] for row in x.tolist()]


@fuzz(INDEX_FAULTS, st.sampled_from(["tokens", "lengths", "both"]))
def test_distributions_of_words_sum_to_one(draw, where):
    rows, width = draw.integer(1, 5), draw.integer(0, 8)
    tokens, lengths = draw.indices((rows, width), WORDS.vocab_size), draw.indices((rows,), width + 1)
    if where != "lengths":
        tokens = draw.with_index_fault(tokens, WORDS.vocab_size)
    if where != "tokens":
        lengths = draw.with_index_fault(lengths, width + 1)
    valid = draw.fault in ("nothing", "strided", "int32")
    distributions = result_or_none(lambda: WORDS.next_log_probs(tokens, lengths), valid)
    if distributions is not None:
        assert distributions.shape == (len(tokens), WORDS.vocab_size)
        assert bool(((distributions.exp().sum(1) - 1).abs() < 1e-9).all())
        assert WORDS.is_member(tokens, lengths).shape == (len(tokens),)
