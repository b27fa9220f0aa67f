"""Tests of the tolerances with which theory functions check distributions."""

import math
from inspect import signature

import pytest
import torch

from trialogue.errors import InputError
from trialogue_lab.theory.factoring.overlap import overlap
from trialogue_lab.theory.masking.block_laws import block_distribution
from trialogue_lab.theory.masking.mixing import stationary_probabilities
from trialogue_lab.theory.masking.product_kernels import closest_in_divergence, product_transitions
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns

ADAPTIVE = list(signature(block_distribution).parameters)[-1]
"""Name of the parameter for an adaptive distribution of blocks."""
CHECKED = {
    "block distribution": (
        1e-6,
        lambda p: block_distribution(1, 2, blocks=[[0], [0]], **{ADAPTIVE: p.expand(2, -1)}),
    ),
    "overlap": (1e-9, lambda p: overlap(torch.ones(2), p)),
    "product distribution": (1e-6, lambda p: closest_in_divergence(p.numpy())),
    "predictions": (1e-6, lambda p: product_transitions(p.expand(2, 1, 2).numpy())),
    "log-probabilities": (1e-4, lambda p: greedy_patterns(p.log().expand(2, 2))),
    "transitions": (1e-9, lambda p: stationary_probabilities(p.expand(2, 2))),
}


@pytest.mark.parametrize("name", CHECKED)
def test_distributions_are_checked_with_the_documented_tolerance(name: str) -> None:
    tolerance, call = CHECKED[name]
    for sign in (-1, 1):
        call(torch.tensor([0.25, 0.75 + sign * 0.9 * tolerance], dtype=torch.float64))
        with pytest.raises(InputError):
            call(torch.tensor([0.25, 0.75 + sign * 1.1 * tolerance], dtype=torch.float64))
    for wrong in ([math.nan, 1.0], [math.inf, 0.0]) if name != "log-probabilities" else ([2.0, math.nan],):
        with pytest.raises(InputError):
            call(torch.tensor(wrong, dtype=torch.float64))
    if name != "log-probabilities":
        with pytest.raises(InputError):
            call(torch.tensor([1.5, -0.5], dtype=torch.float64))
