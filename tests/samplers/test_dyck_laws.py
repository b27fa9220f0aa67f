"""Exact distributions and costs on the Dyck distribution, at the golden numbers, and its own distribution as an
oracle's.
"""

import math

import pytest
import torch

from trialogue.data import Dyck, Table
from trialogue.samplers import Ancestral, Rejection, TokenwiseRejection
from trialogue.samplers.exact import exact_distribution, target_distribution, total_variation

UNIFORM = Table(lambda _: [0.25] * 4, vocab_size=4)


@pytest.mark.parametrize("length", [4, 6, 8])
def test_ancestral_sampling_has_the_law_of_log_prob(length):
    dyck = Dyck(length, (0.3, 0.7), 0.6)
    distribution = exact_distribution(Ancestral(), dyck)
    strings = [x for x, p in distribution.probabilities.items() if p > 0]
    exact = dyck.log_prob(torch.tensor(strings)).exp().tolist()
    assert len(strings) == {4: 8, 6: 40, 8: 224}[length]
    assert max(abs(distribution.probabilities[x] - p) for x, p in zip(strings, exact, strict=True)) < 1e-12
    assert distribution.expected_calls == pytest.approx(length, abs=1e-12)
    other = Dyck(length, (0.3, 0.7), 0.601)
    assert (
        total_variation(distribution.probabilities, exact_distribution(Ancestral(), other).probabilities)
        > 1e-4
    )


def test_tokenwise_rejection_of_a_uniform_oracle_costs_what_it_should():
    dyck = Dyck(8)
    distribution = exact_distribution(TokenwiseRejection(), UNIFORM, dyck, max_new_tokens=8)
    assert distribution.expected_calls == pytest.approx(19.28, abs=5e-3)
    assert math.fsum(distribution.probabilities.values()) == pytest.approx(1, abs=1e-12)


def test_rejection_of_a_uniform_oracle_is_uniform_on_the_language():
    dyck = Dyck(6)
    distribution = exact_distribution(Rejection(), UNIFORM, dyck, max_new_tokens=6)
    assert distribution.expected_calls == pytest.approx(6 * 4**6 / 40, rel=1e-10)
    assert (
        total_variation(distribution.probabilities, target_distribution(UNIFORM, dyck, max_new_tokens=6))
        < 1e-12
    )
    assert list(distribution.probabilities.values()) == pytest.approx([1 / 40] * 40, abs=1e-13)
