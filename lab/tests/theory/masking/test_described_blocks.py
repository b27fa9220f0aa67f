"""Tests that theory functions accept and check the same block arguments as `trialogue.blocks`."""

import math
from inspect import signature

import pytest
import torch

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue_lab.theory.masking.block_laws import block_distribution
from trialogue_lab.theory.masking.pseudolikelihood import asymptotic_covariance

MODEL = Ising.clique(3, 3, 0.3, 0.1)
BLOCKS = [[0, 1], [2], [1, 2]]
ADAPTIVE = list(signature(block_distribution).parameters)[-1]
"""Name of the parameter for an adaptive distribution of blocks."""
FUNCTIONS = {
    "block distribution": lambda **arguments: block_distribution(3, 2, **arguments).given,
    "asymptotic covariance": lambda **arguments: asymptotic_covariance(MODEL, **arguments),
}
REJECTED = [
    ({}, "block_size=None: give one of block_size, blocks"),
    ({"block_size": 1, "weights": [1.0, 1.0, 1.0]}, "blocks=None: give the blocks that the weights"),
    ({"blocks": BLOCKS, "weights": [1, 2, 1], ADAPTIVE: lambda x: x}, "give either weights or"),
    ({"block_size": 4}, "block_size=4: use at most 3"),
    ({"blocks": [[0], [1]]}, "cover every site"),
    ({"blocks": [[0, 1, 3]]}, "blocks=3: use sites from 0 to 2"),
    ({"blocks": BLOCKS, "weights": [1.0, math.nan, 1.0]}, "weights=nan: "),
    ({"blocks": BLOCKS, ADAPTIVE: lambda x: torch.ones(len(x), 3)}, "sum to one"),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_invalid_block_arguments_are_rejected(name):
    for arguments, message in REJECTED:
        with pytest.raises(InputError) as caught:
            FUNCTIONS[name](**arguments)
        assert message in str(caught.value), arguments
