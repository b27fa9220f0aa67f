"""Validation of probabilities, with the same tolerance in every function."""

import math

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.probabilities import validate_distribution, validate_probabilities
from trialogue.samplers import AdaptiveBlockDynamics

CALLS = (lambda p: AdaptiveBlockDynamics(((0,), (0,)), lambda t: p[None])._log_probs(torch.zeros(1, 1)),)


@pytest.mark.parametrize("call", CALLS, ids=["chain"])
def test_a_distribution_may_deviate_from_one_by_the_tolerance(call):
    for sign in (-1, 1):
        call(torch.tensor([0.25, 0.75 + sign * 0.9e-6], dtype=torch.float64))
        expect_error("", call, torch.tensor([0.25, 0.75 + sign * 1.1e-6], dtype=torch.float64))
    for wrong in ([math.nan, 1.0], [math.inf, 0.0], [1.5, -0.5]):
        expect_error("", call, torch.tensor(wrong, dtype=torch.float64))


def test_probabilities_are_returned_unchanged_and_distributions_are_normalized():
    given = torch.tensor([[0.25, 0.7500005], [1.0, 0.0]], dtype=torch.float64)
    assert torch.equal(validate_probabilities("p", given, (2, 2)), given)
    assert torch.equal(validate_distribution("p", given, (2, 2)), given / given.sum(1, keepdim=True))
    assert validate_probabilities("p", np.ones((3, 1), np.float32), (3, 1)).dtype == torch.float64
    assert validate_distribution("p", torch.zeros(0, 2), (0, 2)).shape == (0, 2)


@pytest.mark.parametrize(
    ("values", "shape", "message"),
    [
        ([0.5, 0.6], (2,), r"^p=1\.1: give non-negative probabilities that sum to one$"),
        ([[0.5, 0.5], [1.5, -0.5]], (2, 2), r"^p=-0\.5: "),
        ([0.5, math.nan], (2,), r"^p=nan: "),
        ([math.inf, 0.0], (2,), r"^p=inf: "),
        ([0.5, 0.5], (3,), r"^p=\(2,\): .*of the shape \(3,\)$"),
        (["a", "b"], (2,), r"^p=\['a', 'b'\]: .*of the shape \(2,\)$"),
        ([], (0,), r"^p=0\.0: "),
    ],
)
def test_invalid_probabilities_are_reported(values, shape, message):
    expect_error(message, validate_probabilities, "p", values, shape)
