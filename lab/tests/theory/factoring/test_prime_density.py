"""Tests of the total variation of the prime-density approximation against published values."""

import pytest
from mpmath import li

from refusals import expect_error
from trialogue_lab.theory.factoring.prime_density import (
    density_integral,
    density_variation,
    uniform_variation,
)


def test_density_integral_is_the_logarithmic_integral() -> None:
    numbers = [2, 3, 10, 1000, 123456]
    assert density_integral(numbers).tolist() == pytest.approx([float(li(number)) for number in numbers])
    assert density_integral([0, 1]).tolist() == pytest.approx([float(li(2))] * 2)


@pytest.mark.parametrize(
    ("digits", "first"),
    [(6, (0.0011, 0.0063, 0.0289)), (5, (0.0043, 0.0212, 0.0842)), (4, (0.0081, 0.0692, 0.2965))],
)
def test_variation_by_digit_agrees_with_published_values(digits: int, first: tuple[float, ...]) -> None:
    assert density_variation(digits)[:3].tolist() == pytest.approx(first, abs=5e-5)
    assert uniform_variation(6)[:3].tolist() == pytest.approx((0.0192, 0.0198, 0.0343), abs=1e-4)


def test_counting_the_last_digits_bounds_the_error() -> None:
    integral, hybrid = density_variation(6), density_variation(6, counted=4)
    assert hybrid[:2].tolist() == integral[:2].tolist()
    assert hybrid.max() < 0.01 < integral[2]
    assert hybrid[2:].tolist() == pytest.approx([float(hybrid[1])] * 4)
    assert density_variation(4, counted=4).max() < 1e-14


def test_too_many_counted_digits_are_rejected() -> None:
    expect_error(r"^counted=4: must be at most digits=3", density_variation, 3, 4)
