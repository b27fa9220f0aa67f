"""Tests of distributions of blocks, conditionals of adaptive masks, and the block dynamics."""

import itertools

import pytest
import torch

from refusals import expect_error
from theory.random_models import SIX_BLOCKS, random_ising, random_simplex, reversibility_gap
from trialogue_lab.theory.masking.block_laws import (
    block_distribution,
    block_dynamics,
    conditionals,
    joint_block_dynamics,
    uniform_blocks,
)
from trialogue_lab.theory.masking.mixing import stationary_probabilities

# Lemma 4.3.1: states 00, 01, 10, 11, and masked blocks {0} and {1}.
LEMMA = torch.tensor([1 / 2, 1 / 3, 1 / 6, 0.0], dtype=torch.float64)
LEMMA_BLOCKS = torch.tensor(
    [[1 / 2, 1 / 2], [1 / 3, 2 / 3], [1 / 4, 3 / 4], [1 / 2, 1 / 2]], dtype=torch.float64
)


def test_adaptive_blocks_change_the_conditionals():
    table = conditionals(LEMMA, block_distribution(2, 2, blocks=[[0], [1]], distribution=LEMMA_BLOCKS))
    assert float(table[0, 1]) == pytest.approx(9 / 17, abs=1e-15)  # p(x_1 = 0 | x_0 = 0, K = {1}), not 3/5
    assert float(table[0, 0]) == pytest.approx(6 / 7, abs=1e-15)  # p(x_0 = 0 | x_1 = 0, K = {0}), not 3/4
    plain = conditionals(LEMMA, block_distribution(2, 2, blocks=[[0], [1]]))
    assert plain[0].tolist() == pytest.approx([3 / 4, 3 / 5], abs=1e-15)


def test_conditionals_averaged_over_blocks_are_those_of_the_sequences():
    """Lemma 4.3.2: the split into x_K and x_{-K} is fixed, and the mean is over blocks K' given x_{-K}."""
    p, given = random_simplex(16), random_simplex(16, 6)
    block_weights = block_distribution(4, 2, blocks=SIX_BLOCKS, distribution=given)
    joint = p[:, None] * given
    gaps = []
    for block in range(6):
        for group in block_weights.completions(block):
            expected = p[group] / p[group].sum()
            per_block = joint[group] / joint[group].sum(0)
            chosen = joint[group].sum(0) / p[group].sum()
            torch.testing.assert_close(per_block @ chosen, expected, rtol=1e-12, atol=0)
            gaps.append(float((per_block.mean(1) - expected).abs().max()))  # blocks equally likely
    assert max(gaps) > 0.01


@pytest.mark.parametrize("block_size", [1, 2, 4])
def test_block_dynamics_agrees_with_the_definition(block_size):
    model = random_ising(4)
    p, states = model.probabilities(), model.states()
    expected = torch.zeros(16, 16, dtype=torch.float64)
    blocks = list(itertools.combinations(range(4), block_size))
    for block in blocks:
        rest = [site for site in range(4) if site not in block]
        same = (states[:, None, rest] == states[None, :, rest]).all(2)
        expected += same * p / (same * p).sum(1, keepdim=True) / len(blocks)
    matrix = block_dynamics(p, block_distribution(4, 2, block_size=block_size))
    torch.testing.assert_close(matrix, expected, rtol=0, atol=1e-15)


def test_adaptive_chain_is_stationary_only_if_conditionals_depend_on_the_block():
    model, given = random_ising(4), random_simplex(16, 6)
    p = model.probabilities()
    block_weights = block_distribution(4, 2, blocks=SIX_BLOCKS, distribution=given)
    assert reversibility_gap(block_dynamics(p, block_weights), p) < 1e-15
    torch.testing.assert_close(
        stationary_probabilities(block_dynamics(p, block_weights)), p, rtol=1e-12, atol=0
    )
    # The mutant samples x_K from p(x_K | x_{-K}) although the distribution of K depends on x.
    mutant = torch.zeros(16, 16, dtype=torch.float64)
    for k, fibers in enumerate(block_distribution(4, 2, blocks=SIX_BLOCKS).fibers(p)):
        rows, columns = fibers.states[:, :, None], fibers.states[:, None, :]
        mutant[rows, columns] += given[:, k][rows] * fibers.conditionals[:, None, :]
    assert reversibility_gap(mutant, p) > 1e-3


def test_joint_chain_is_stationary_and_never_changes_the_block():
    p = random_simplex(8)
    block_weights = block_distribution(3, 2, blocks=[[0], [1, 2]], distribution=random_simplex(8, 2))
    matrix = joint_block_dynamics(p, block_weights)
    torch.testing.assert_close(matrix.sum(1), torch.ones(16, dtype=torch.float64), rtol=0, atol=1e-14)
    pairs = torch.arange(16) % 2
    assert not bool(matrix[pairs[:, None] != pairs].any())
    torch.testing.assert_close(
        (p[:, None] * block_weights.given).flatten() @ matrix, (p[:, None] * block_weights.given).flatten()
    )


def test_uniform_blocks_contain_every_block_of_a_size():
    masks = uniform_blocks(5, 2)
    assert [tuple(torch.nonzero(mask)[:, 0].tolist()) for mask in masks] == list(
        itertools.combinations(range(5), 2)
    )


def test_error_about_too_many_blocks_has_a_hint():
    expect_error(r"^block_size=20: 40 sites have .* use a smaller model", uniform_blocks, 40, 20)
