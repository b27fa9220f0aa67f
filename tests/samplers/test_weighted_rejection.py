"""Weighted rejection: the masked distribution of every token, and an unbiased, independent estimate of its mass,
exactly.
"""

import pytest
import torch

from trialogue.data.table import Table
from trialogue.samplers import WeightedRejection, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.samplers.prefix import weighted_rejection
from trialogue.samplers.prefix.weighted_rejection import draw_accepted
from trialogue.testing.trees import RandomTree


class Members:
    """A judge of single tokens: 1 inside the set."""

    def __init__(self, accepted):
        self.verdicts = torch.zeros(4, dtype=torch.float64)
        self.verdicts[list(accepted)] = 1

    def candidates(self, rows, tokens):
        return self.verdicts[tokens]


@pytest.mark.parametrize("size", [1, 2])
def test_drawing_by_blocks_of_the_vocabulary_gives_the_same_distribution(monkeypatch, size):
    tree = RandomTree(15, vocab=4, horizon=2)
    single_block = exact_distribution(WeightedRejection(), tree.table(), tree.judges)
    monkeypatch.setattr(weighted_rejection, "_BLOCK", size)
    blocks = exact_distribution(WeightedRejection(), tree.table(), tree.judges)
    assert blocks.probabilities == pytest.approx(single_block.probabilities, abs=1e-12)
    assert blocks.weights == pytest.approx(single_block.weights, abs=1e-12)


def test_little_mass_is_estimated_to_full_precision():
    distribution = torch.tensor([[1 - 1e-30, 1e-30, 1e-32, 1e-33]], dtype=torch.float64)
    row = torch.zeros(1, dtype=torch.int64)

    def likeliest(log_weights, rows):
        return log_weights.argmax(1)

    token, log_mass, _ = draw_accepted(distribution.log(), row, row, Members((2, 3)), likeliest)
    # 1 - m_k by subtraction would be zero.
    expected = 1 / (1 + 1 / 1.011e-30 + 1 / 1.1e-32)
    assert (int(token), float(log_mass.exp())) == (2, pytest.approx(expected, rel=1e-12))


def test_only_drawn_tokens_are_judged():
    wide = Table(lambda prefix: [0.45, 0.45] + [0.1 / 998] * 998, 1000, max_length=20)
    run = generate(wide, sampler=WeightedRejection(), verifier=lambda y: y[-1] != 0, num_samples=20)
    assert run.queries.tolist() == [20] * 20
    assert int(run.verifier_calls.sum()) < 4 * 20 * 20
