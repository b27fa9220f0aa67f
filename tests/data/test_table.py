"""Test the conditionals, memory and errors of `Table`."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.data.table import Table
from trialogue.oracles import Autoregressive, pad_sequences
from trialogue.randomness import numpy_generator


def conditionals(table: Table, prefixes) -> np.ndarray:
    tokens, lengths = pad_sequences(prefixes, 6)
    return table.next_log_probs(tokens, lengths).exp().numpy()


@pytest.mark.parametrize(("vocab", "length"), [(2, 1), (2, 4), (3, 3)])
def test_conditionals_of_a_joint_distribution_are_ratios_of_marginals(vocab, length):
    joint = numpy_generator(1, "joint", vocab, length).random((vocab,) * length)
    table = Table(joint)
    assert isinstance(table, Autoregressive)
    assert (table.vocab_size, table.max_length, table.eos) == (vocab, length, None)
    for size in range(length):
        prefixes = list(product(range(vocab), repeat=size))
        expected = [[joint[(*p, token)].sum() / joint[p].sum() for token in range(vocab)] for p in prefixes]
        np.testing.assert_allclose(conditionals(table, prefixes), expected, rtol=1e-13)


def test_function_results_are_normalized_and_cached():
    calls = Counter()

    def distribution(prefix):
        calls[prefix] += 1
        return [1, 2, 1 + len(prefix)]

    table = Table(distribution, 3, eos=2, max_length=6)
    prefixes = [(), (0,), (0, 1), (0,), ()]
    for _ in range(2):
        expected = [[1 / (4 + len(p)), 2 / (4 + len(p)), (1 + len(p)) / (4 + len(p))] for p in prefixes]
        np.testing.assert_allclose(conditionals(table, prefixes), expected, rtol=1e-13)
    assert set(calls.values()) == {1}
    assert set(calls) == set(prefixes)
    assert all(isinstance(token, int) for prefix in calls for token in prefix)


def test_tokens_after_the_length_are_ignored():
    table = Table(lambda prefix: [1 + sum(prefix), 1], 2)
    tokens = torch.tensor([[1, 0, 0], [1, 1, 1]])
    log_probs = table.next_log_probs(tokens, torch.tensor([1, 1]))
    assert torch.equal(log_probs[0], log_probs[1])
    assert log_probs.dtype == torch.float64


def test_tables_have_no_hidden_states():
    table = Table(lambda prefix: [1, 1], 2)
    with pytest.raises(TypeError, match="Table has no hidden states"):
        table.open(1, 1, layers=[0])
    with pytest.raises(TypeError, match="Table has no hidden states"):
        table.open(1, 1).hidden(torch.zeros(1, 2), -1)


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        ([0.5], "give 2 probabilities"),
        ([-0.5, 1.5], "give 2 probabilities"),
        ([math.nan, 1.0], "give 2 probabilities"),
        ([0.0, 0.0], "give a token a positive probability"),
        ("half", "give 2 probabilities"),
    ],
)
def test_invalid_probabilities_are_rejected(distribution, message):
    table = Table(lambda prefix: distribution, 2)
    expect_error(rf"distribution=.*after \(1,\) {message}", conditionals, table, [(1,)])


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ([lambda prefix: [1, 1]], {}, "vocab_size=None"),
        ([[[0.5, 0.5]]], {}, r"distribution=\(1, 2\)"),
        ([[[0.5, 0.5], [0.5]]], {}, "distribution="),
        ([[0.5, 0.5], 3], {}, "vocab_size=3"),
        ([[0.5, 0.5]], {"max_length": 2}, "max_length=2"),
        ([[0.0, 0.0]], {}, "distribution="),
        ([[0.5, 0.5]], {"eos": 2}, "eos=2"),
        ([lambda prefix: [1, 1], 2], {"eos": -1}, "eos=-1"),
    ],
)
def test_invalid_arguments_are_rejected(arguments, settings, message):
    expect_error(message, Table, *arguments, **settings)


def test_max_length_truncates_a_joint_distribution():
    table = Table([[0.1, 0.2], [0.3, 0.4]], 2, max_length=1)
    assert table.max_length == 1
    np.testing.assert_allclose(conditionals(table, [()]), [[0.3, 0.7]])


def test_function_with_memory_receives_the_last_tokens():
    received = []

    def distribution(latest):
        received.append(latest)
        return [1, 1 + sum(latest)]

    table = Table(distribution, 2, memory=2)
    np.testing.assert_allclose(
        conditionals(table, [(), (1,), (1, 0, 1), (0, 0, 1)])[:, 1], [1 / 2, 2 / 3, 2 / 3, 2 / 3]
    )
    assert received == [(), (1,), (0, 1)]
    assert table.sufficient(torch.tensor([[1, 0, 1]]), torch.tensor([3])).tolist() == [[0, 1]]


def aware(prefix):
    return locals()


@pytest.mark.parametrize(
    ("distribution", "memory"),
    [
        (lambda _: (0.5, 0.5), 0),
        (lambda prefix: [1, len(prefix)], None),
        (lambda prefix: (lambda: prefix)() and [1, 1], None),
        (lambda *prefix: [1, 1], None),
        (aware, None),
        ([0.5, 0.5], None),
    ],
)
def test_function_that_ignores_its_argument_has_no_memory(distribution, memory):
    assert Table(distribution, 2).memory == memory


@pytest.mark.parametrize(
    ("distribution", "memory"), [(lambda _: [1, 1], -1), (lambda _: [1, 1], 1.0), ([0.5, 0.5], 1)]
)
def test_invalid_memory_is_rejected(distribution, memory):
    expect_error(r"^memory=", Table, distribution, 2, memory=memory)
