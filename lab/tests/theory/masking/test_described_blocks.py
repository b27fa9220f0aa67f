"""The theory reads the distribution of a block as the library does (`trialogue.blocks`): the same words and checks."""

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
"""The keyword of an adaptive distribution."""
DESCRIBED = {
    "block law": lambda **described: block_distribution(3, 2, **described).given,
    "asymptotic covariance": lambda **described: asymptotic_covariance(MODEL, **described),
}
REFUSED = [
    ({}, "block_size=None: give one of block_size, blocks"),
    ({"block_size": 1, "weights": [1.0, 1.0, 1.0]}, "blocks=None: give the blocks that the weights"),
    ({"blocks": BLOCKS, "weights": [1, 2, 1], ADAPTIVE: lambda x: x}, "give either weights or"),
    ({"block_size": 4}, "block_size=4: use at most 3"),
    ({"blocks": [[0], [1]]}, "cover every site"),
    ({"blocks": [[0, 1, 3]]}, "blocks=3: use sites from 0 to 2"),
    ({"blocks": BLOCKS, "weights": [1.0, math.nan, 1.0]}, "weights=nan: "),
    ({"blocks": BLOCKS, ADAPTIVE: lambda x: torch.ones(len(x), 3)}, "sum to one"),
]


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_wrong_description_is_refused(name):
    for described, told in REFUSED:
        with pytest.raises(InputError) as caught:
            DESCRIBED[name](**described)
        assert told in str(caught.value), described


@pytest.mark.parametrize("name", DESCRIBED)
def test_weights_are_probabilities_up_to_a_factor(name):
    call = DESCRIBED[name]
    expected = call(blocks=BLOCKS, weights=[0.25, 0.5, 0.25])
    for weights in ((1, 2, 1), torch.tensor([2, 4, 2]), [2.0**1022, 2.0**1023, 2.0**1022]):
        torch.testing.assert_close(call(blocks=BLOCKS, weights=weights), expected, rtol=1e-12, atol=1e-14)
    uniform = call(blocks=BLOCKS, weights=[3.0, 3.0, 3.0])
    torch.testing.assert_close(call(blocks=BLOCKS), uniform, rtol=1e-12, atol=1e-14)
