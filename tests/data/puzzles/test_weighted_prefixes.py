"""Test distributions given as lists of sequences."""

import itertools

import pytest
import torch

from one_line_errors import refusals
from refusals import expect_error
from trialogue.data.puzzles.weighted_prefixes import ListedDistribution, WithStopToken, decimal_edges
from trialogue.samplers import Ancestral, generate
from trialogue.samplers.exact import exact_distribution


def test_listed_distribution_is_the_distribution_of_its_oracle():
    sequences = torch.tensor([[0, 1, 2], [0, 2, 2], [0, 1, 2], [2, 0, 0], [1, 1, 1]])
    distribution = ListedDistribution(sequences, torch.tensor([1.0, 2.0, 3.0, 2.0, 0.0]), 3)
    truth = {(0, 1, 2): 0.5, (0, 2, 2): 0.25, (2, 0, 0): 0.25}
    assert exact_distribution(Ancestral(), distribution).probabilities == pytest.approx(truth)
    assert (
        dict(
            zip(
                map(tuple, distribution.states().tolist()), distribution.probabilities().tolist(), strict=True
            )
        )
        == truth
    )
    assert distribution.next_log_probs(torch.tensor([[0, 1]]), torch.tensor([1]))[
        0
    ].exp().tolist() == pytest.approx([0, 2 / 3, 1 / 3])
    expect_error(r"^tokens=\(1,\): use a prefix", generate, distribution, [[1]])


def test_stop_token_follows_complete_sequences_only():
    oracle = WithStopToken(
        ListedDistribution(
            torch.tensor([divmod(number, 10) for number in range(10, 100)]), torch.ones(90), 10
        )
    )
    distribution = exact_distribution(Ancestral(), oracle).probabilities
    assert distribution == pytest.approx(
        {(*divmod(number, 10), oracle.eos): 1 / 90 for number in range(10, 100)}
    )
    assert sum(oracle.weights((0, 3))) == sum(oracle.weights((1, 3, oracle.eos))) == 0
    expect_error(r"^oracle='WithStopToken': use an oracle", WithStopToken, oracle)


def test_intervals_of_numbers_that_continue_a_prefix():
    assert list(decimal_edges((), 1)) == list(range(11))
    assert list(decimal_edges((4, 2), 4)) == [4200 + 10 * digit for digit in range(11)]


@pytest.mark.parametrize(
    ("tokens", "length", "message"),
    [
        ([0, 1, 2], 3, r"^tokens=\(0, 1, 2\): use prefixes of fewer than 3 tokens"),
        ([0, 3, 2], 2, r"^tokens=\(0, 3\): use tokens from 0 to 2"),
        ([-1, 1, 2], 2, r"^tokens=\(-1, 1\): use tokens from 0 to 2"),
        ([1, 1, 2], 1, r"^tokens=\(1,\): use a prefix"),
    ],
)
def test_prefixes_without_a_next_token(tokens, length, message):
    distribution = ListedDistribution(torch.tensor([[0, 1, 2]]), torch.ones(1), 3)
    expect_error(message, distribution.next_log_probs, torch.tensor([tokens]), torch.tensor([length]))


def test_begins_accepts_possible_prefixes_only():
    distribution = ListedDistribution(torch.tensor([[0, 1, 2], [2, 0, 0]]), torch.ones(2), 3)
    beginnings = {(), (0,), (0, 1), (0, 1, 2), (2,), (2, 0), (2, 0, 0)}
    for prefix in [()] + [p for n in (1, 2, 3) for p in itertools.product(range(-1, 4), repeat=n)]:
        assert distribution.begins(prefix) == (prefix in beginnings)


def test_huge_weights_do_not_overflow():
    distribution = ListedDistribution(
        torch.tensor([[0], [1]]), torch.tensor([1.5e308, 1.5e308], dtype=torch.float64), 2
    )
    assert distribution.probabilities().tolist() == [0.5, 0.5]
    assert distribution.weights(()) == [1.0, 1.0]


test_invalid_input_is_reported = refusals(
    "{}",
    [
        (lambda: ListedDistribution([[3]], [1.0], 3), "^sequences=3: use tokens from 0 to 2"),
        (lambda: ListedDistribution([[1]], [1.0, 1.0], 3), r"^weights=\[1.0, 1.0\]: give 1 numbers"),
        (
            lambda: ListedDistribution([[1]], [0.0], 3),
            "^weights=0.0: give at least one sequence a positive weight",
        ),
    ],
)
