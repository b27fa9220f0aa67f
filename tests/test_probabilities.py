"""What is a distribution and what is not, with one tolerance for all that a call checks."""

import math

import numpy as np
import pytest
import torch

from trialogue.errors import InputError
from trialogue.probabilities import checked_law, checked_probabilities
from trialogue.samplers import AdaptiveBlockDynamics
from trialogue_lab.theory.factoring.overlap import overlap
from trialogue_lab.theory.masking.block_laws import block_law
from trialogue_lab.theory.masking.mixing import stationary_law
from trialogue_lab.theory.masking.product_kernels import closest_in_divergence, product_transitions
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns

CHECKED = {
    "block distribution": (1e-6, lambda p: block_law(1, 2, blocks=[[0], [0]], distribution=p.expand(2, -1))),
    "chain": (
        1e-6,
        lambda p: AdaptiveBlockDynamics(((0,), (0,)), lambda t: p[None])._log_law(torch.zeros(1, 1)),
    ),
    "overlap": (1e-9, lambda p: overlap(torch.ones(2), p)),
    "product distribution": (1e-6, lambda p: closest_in_divergence(p.numpy())),
    "predictions": (1e-6, lambda p: product_transitions(p.expand(2, 1, 2).numpy())),
    "log-probabilities": (1e-4, lambda p: greedy_patterns(p.log().expand(2, 2))),
    "transitions": (1e-9, lambda p: stationary_law(p.expand(2, 2))),
}


@pytest.mark.parametrize("name", CHECKED)
def test_everything_that_takes_a_law_keeps_its_tolerance(name: str) -> None:
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


def test_probabilities_stay_as_they_are_and_laws_sum_to_one() -> None:
    given = torch.tensor([[0.25, 0.7500005], [1.0, 0.0]], dtype=torch.float64)
    assert torch.equal(checked_probabilities("p", given, (2, 2)), given)
    assert torch.equal(checked_law("p", given, (2, 2)), given / given.sum(1, keepdim=True))
    assert checked_probabilities("p", np.ones((3, 1), np.float32), (3, 1)).dtype == torch.float64
    assert checked_law("p", torch.zeros(0, 2), (0, 2)).shape == (0, 2)


@pytest.mark.parametrize(
    ("values", "shape", "told"),
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
def test_what_is_wrong_is_named(values: object, shape: tuple[int, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        checked_probabilities("p", values, shape)
