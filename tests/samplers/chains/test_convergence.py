"""Chains that mix are told from chains that do not."""

import math

import pytest
import torch

from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.samplers import convergence


def noise(*shape):
    return torch.randn(*shape, generator=generator(0, "noise"), dtype=torch.float64)


def test_independent_values_are_as_many_as_they_are():
    found = convergence(noise(400, 8))
    assert found.mixed
    assert found.effective_sample_size == pytest.approx(200 * 8, rel=0.15)
    assert found.r_hat == pytest.approx(1, abs=0.01)


def test_autocorrelated_values_count_for_less():
    """An AR(1) sequence of coefficient a has (1 - a) / (1 + a) of its values effectively."""
    values, a = noise(4000, 8), 0.8
    for step in range(1, len(values)):
        values[step] = a * values[step - 1] + math.sqrt(1 - a**2) * values[step]
    found = convergence(values)
    assert found.effective_sample_size == pytest.approx(2000 * 8 * (1 - a) / (1 + a), rel=0.2)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (noise(40, 8) + 5 * torch.arange(8), "chains that stay apart"),
        (noise(400, 8) + torch.arange(400)[:, None] / 200, "a trend within the spread of each chain"),
        (torch.zeros(40, 8) + torch.arange(8.0), "chains that do not move"),
        (torch.zeros(40, 8), "values that never change"),
    ],
)
def test_what_has_not_mixed_is_told(values, why):
    assert not convergence(values).mixed, why


def test_the_start_is_left_out():
    values = noise(80, 8)
    values[:40] += 100
    assert convergence(values).mixed


@pytest.mark.parametrize(
    "values", [torch.zeros(7, 3), torch.zeros(9), torch.zeros(9, 0), torch.full((9, 2), math.nan)]
)
def test_bad_input_is_named(values):
    with pytest.raises(InputError) as caught:
        convergence(values)
    assert caught.value.field == "values"
