"""Distributions over blocks, given as sites, masks and weights."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.blocks import (
    block_masks,
    block_probabilities,
    list_block_sites,
    require_covered,
    require_one_distribution,
)
from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue.samplers import BlockDynamics
from trialogue.samplers.exact import transition_matrix

MODEL = Ising.clique(3, 3, 0.3, 0.1)
BLOCKS = [[0, 1], [2], [1, 2]]


def transitions(weights: Any = None) -> torch.Tensor:
    return torch.as_tensor(transition_matrix(BlockDynamics(BLOCKS, weights), MODEL))


def test_weights_need_not_sum_to_one():
    expected = transitions([0.25, 0.5, 0.25])
    for weights in ((1, 2, 1), torch.tensor([2, 4, 2]), [2.0**1022, 2.0**1023, 2.0**1022]):
        torch.testing.assert_close(transitions(weights), expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(transitions(), transitions([3.0, 3.0, 3.0]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0, 1.0], r"^weights=-1\.0: give 3 non-negative finite weights"),
        ([1.0, math.nan, 1.0], r"^weights=nan: "),
        ([1.0, math.inf, 1.0], r"^weights=inf: "),
        ([0.0, 0.0, 0.0], r"^weights=0\.0: .*not all zero"),
        ([1.0, 2.0], r"^weights=\(2,\): .*one for each block$"),
        (["a", "b", "c"], r"^weights=\['a', 'b', 'c'\]: "),
        ([1.0, 0.0, 0.0], r"^blocks=\[2\]: .*cover every site$"),
    ],
)
def test_invalid_weights_are_rejected(weights, message):
    expect_error(message, transitions, weights)


def test_block_probabilities_are_exact():
    assert block_probabilities(None, 7).tolist() == [1 / 7] * 7
    assert block_probabilities((1, 2, 1), 3).tolist() == [0.25, 0.5, 0.25]
    assert block_probabilities([1e308, 1e308], 2).tolist() == [0.5, 0.5]


def test_a_flat_list_of_sites_is_rejected():
    for flat in ([0, 1, 2], np.array([0, 1])):
        expect_error(r"^blocks=.*give a list of blocks, each a list of sites", list_block_sites, flat)


def test_blocks_are_read_from_sites_and_masks():
    rows = np.array([[True, False, True], [False, True, True]])
    assert list_block_sites(rows) == list_block_sites(torch.from_numpy(rows)) == ((0, 2), (1, 2))
    assert torch.equal(block_masks(rows, 3), torch.from_numpy(rows))
    masks = torch.tensor([[True, True, False], [False, False, True], [False, True, True]])
    assert torch.equal(block_masks(BLOCKS, 3), masks)
    assert torch.equal(block_masks(masks, 3), masks)
    assert list_block_sites(masks) == ((0, 1), (2,), (1, 2))
    require_covered("masks", masks[:2])
    expect_error(r"^masks=\[0\]: ", require_covered, "masks", masks[1:])
    with pytest.raises(InputError, match=r"^block_size=None: give one of block_size, blocks, masks$"):
        require_one_distribution(None, None, None, None, masks=None)
