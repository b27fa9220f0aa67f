"""Test the hidden-string oracle and the perfect verifiers of section 3.1."""

from itertools import product

import pytest
import torch

from trialogue.data import Table
from trialogue.data.puzzles.hidden_string import (
    HiddenString,
    SubsetSum,
    all_zeros_task,
    fair_bits,
    hidden_string_task,
    some_zero_task,
    subset_sum_task,
)
from trialogue.errors import InputError
from trialogue.oracles import next_log_probs
from trialogue.samplers import Ancestral, values
from trialogue.samplers.exact import exact_distribution
from trialogue.verifiers import FunctionVerifier


@pytest.mark.parametrize("hidden", [(), (1,), (0, 1), (1, 1, 0, 1)])
def test_hidden_string_oracle(hidden):
    oracle = HiddenString(hidden)
    distribution = exact_distribution(Ancestral(), oracle).probabilities
    assert len(distribution) == 2 ** len(hidden)
    assert all(p == pytest.approx(2.0 ** -len(hidden)) for p in distribution.values())
    assert [string for string in distribution if sum(string) % 2 == 0] == [oracle.answer]
    assert oracle.answer[:-1] == hidden


def test_short_prefixes_reveal_nothing():
    tokens = torch.tensor([[0, 0, 1], [1, 1, 0]])
    for stop in (0, 1, 2):
        lengths = torch.full((2,), stop)
        distributions = [
            next_log_probs(HiddenString(hidden), tokens, lengths) for hidden in ((0, 0, 1), (1, 1, 1))
        ]
        assert torch.equal(*distributions)
        assert float(distributions[0].exp().min()) == pytest.approx(0.5)


def is_perfect(verifier, length: int, rule) -> bool:
    """Return whether the verifier is correct for every prefix and every string."""
    strings = [string for string in product((0, 1), repeat=length) if rule(string)]
    viable = {string[:size] for string in strings for size in range(length + 1)}
    prefixes = [p for size in range(length + 1) for p in product((0, 1), repeat=size)]
    found = values(verifier, fair_bits(length), prefixes)
    return [bool(value) for value in found] == [prefix in viable for prefix in prefixes]


WEIGHTS = (3, 1, 0, 4, 2)
TASKS = [
    (hidden_string_task((0, 1, 1, 0)), lambda bits: sum(bits) % 2 == 0),
    (all_zeros_task(5), lambda bits: not any(bits)),
    (some_zero_task(5), lambda bits: not all(bits)),
    (some_zero_task(1), lambda bits: not all(bits)),
    (
        subset_sum_task(WEIGHTS, 6),
        lambda bits: sum(x for bit, x in zip(bits, WEIGHTS, strict=True) if bit) == 6,
    ),
    (subset_sum_task((2, 4, 6), 3), lambda bits: False),
]


@pytest.mark.parametrize(("task", "rule"), TASKS)
def test_verifiers_are_perfect(task, rule):
    assert is_perfect(task.verifier, task.length, rule)
    assert task.oracle.max_length == task.length


def test_imperfect_verifiers_are_rejected():
    assert not is_perfect(SubsetSum(WEIGHTS, (6, 7)), 5, TASKS[4][1])


def test_other_lengths_and_tokens_are_rejected():
    verifier, oracle = SubsetSum((1, 1), (0, 1)), Table(lambda _: (1, 1, 1), 3)
    assert values(verifier, oracle, [(), (0,), (2,), (0, 2), (0, 1), (1, 1)], max_length=2).tolist() == [
        1, 1, 0, 0, 1, 0
    ]  # fmt: skip
    assert not values(verifier, oracle, [(), (0,), (0, 0, 0)], max_length=3).any()
    ends = Table(lambda _: (1, 1), 2, eos=0, max_length=2)
    assert values(verifier, ends, [(1,), (0,), (1, 0)]).tolist() == [1, 0, 1]
    assert values(FunctionVerifier(lambda prefix: True), ends, [(0,)]).tolist() == [1]


def test_too_many_sums_are_rejected():
    with pytest.raises(InputError, match=r"^weights=.*use fewer or smaller weights"):
        SubsetSum([3**power for power in range(24)], (sum(3**power for power in range(24)) // 2 + 1,))
    assert SubsetSum((1,) * 200, range(201)).length == 200
