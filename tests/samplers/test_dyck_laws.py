"""Exact laws and costs on the Dyck distribution, at the golden numbers, and its own law as an oracle's."""

import math

import pytest
import torch

from trialogue.data import Dyck, Table
from trialogue.samplers import Ancestral, Rejection, TokenwiseRejection
from trialogue.samplers.exact import exact_law, target_law, total_variation

UNIFORM = Table(lambda _: [0.25] * 4, vocab_size=4)


@pytest.mark.parametrize("length", [4, 6, 8])
def test_ancestral_sampling_has_the_law_of_log_prob(length):
    dyck = Dyck(length, (0.3, 0.7), 0.6)
    law = exact_law(Ancestral(), dyck)
    strings = [x for x, p in law.probabilities.items() if p > 0]
    exact = dyck.log_prob(torch.tensor(strings)).exp().tolist()
    assert len(strings) == {4: 8, 6: 40, 8: 224}[length]
    assert max(abs(law.probabilities[x] - p) for x, p in zip(strings, exact, strict=True)) < 1e-12
    assert law.expected_queries == pytest.approx(length, abs=1e-12)
    other = Dyck(length, (0.3, 0.7), 0.601)
    assert total_variation(law.probabilities, exact_law(Ancestral(), other).probabilities) > 1e-4


def test_tokenwise_rejection_of_a_uniform_oracle_costs_what_it_should():
    dyck = Dyck(8)
    law = exact_law(TokenwiseRejection(), UNIFORM, dyck, max_new_tokens=8)
    assert law.expected_queries == pytest.approx(19.28, abs=5e-3)
    assert math.fsum(law.probabilities.values()) == pytest.approx(1, abs=1e-12)


def test_rejection_of_a_uniform_oracle_is_uniform_on_the_language():
    dyck = Dyck(6)
    law = exact_law(Rejection(), UNIFORM, dyck, max_new_tokens=6)
    assert law.expected_queries == pytest.approx(6 * 4**6 / 40, rel=1e-10)
    assert total_variation(law.probabilities, target_law(UNIFORM, dyck, max_new_tokens=6)) < 1e-12
    assert list(law.probabilities.values()) == pytest.approx([1 / 40] * 40, abs=1e-13)
