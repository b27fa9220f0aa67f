"""Diagnostics that distinguish mixed chains from others."""

import math

import pytest
import torch

from refusals import expect_error
from trialogue.randomness import generator
from trialogue.samplers import convergence


def noise(*shape):
    return torch.randn(*shape, generator=generator(0, "noise"), dtype=torch.float64)


def test_independent_values_count_fully():
    found = convergence(noise(400, 8))
    assert found.mixed
    assert found.effective_sample_size == pytest.approx(200 * 8, rel=0.15)
    assert found.r_hat == pytest.approx(1, abs=0.01)


def test_autocorrelated_values_count_for_less():
    """The effective share of an AR(1) sequence with coefficient a is (1 - a) / (1 + a)."""
    values, a = noise(4000, 8), 0.8
    for step in range(1, len(values)):
        values[step] = a * values[step - 1] + math.sqrt(1 - a**2) * values[step]
    found = convergence(values)
    assert found.effective_sample_size == pytest.approx(2000 * 8 * (1 - a) / (1 + a), rel=0.2)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (noise(40, 8) + 5 * torch.arange(8), "chains that stay apart"),
        (noise(400, 8) + torch.arange(400)[:, None] / 200, "a trend within the spread of each chain"),
        (torch.zeros(40, 8) + torch.arange(8.0), "chains that do not move"),
        (torch.zeros(40, 8), "values that never change"),
    ],
)
def test_chains_that_have_not_mixed_are_detected(values, reason):
    assert not convergence(values).mixed, reason


def test_the_first_half_is_discarded():
    values = noise(80, 8)
    values[:40] += 100
    assert convergence(values).mixed


@pytest.mark.parametrize(
    "values", [torch.zeros(7, 3), torch.zeros(9), torch.zeros(9, 0), torch.full((9, 2), math.nan)]
)
def test_invalid_values_are_reported(values):
    assert expect_error("", convergence, values).field == "values"
