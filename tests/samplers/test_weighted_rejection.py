"""Weighted rejection: blocks of the vocabulary and verifier calls. `test_exact_distributions` checks the rest."""

import pytest

from trialogue.data.table import Table
from trialogue.samplers import WeightedRejection, generate
from trialogue.samplers.exact import exact_distribution
from trialogue.samplers.prefix import weighted_rejection
from trialogue.testing.trees import RandomTree


@pytest.mark.parametrize("size", [1, 2])
def test_drawing_by_blocks_of_the_vocabulary_gives_the_same_distribution(monkeypatch, size):
    tree = RandomTree(15, vocab=4, horizon=2)
    single_block = exact_distribution(WeightedRejection(), tree.table(), tree.judges)
    monkeypatch.setattr(weighted_rejection, "_BLOCK", size)
    blocks = exact_distribution(WeightedRejection(), tree.table(), tree.judges)
    assert blocks.probabilities == pytest.approx(single_block.probabilities, abs=1e-12)
    assert blocks.weights == pytest.approx(single_block.weights, abs=1e-12)


def test_only_drawn_tokens_are_judged():
    wide = Table(lambda prefix: [0.45, 0.45] + [0.1 / 998] * 998, 1000, max_length=20)
    run = generate(wide, sampler=WeightedRejection(), verifier=lambda y: y[-1] != 0, num_samples=20)
    assert run.queries.tolist() == [20] * 20
    assert int(run.verifier_calls.sum()) < 4 * 20 * 20
