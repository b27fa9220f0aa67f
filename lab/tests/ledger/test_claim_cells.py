"""Cells of tables of claims: rounding, units and criteria."""

import math

import pytest

from refusals import expect_error
from trialogue_lab.ledger.pages.claim_cells import format_condition, format_estimate


def record(estimate, low=None, high=None, direction="above", threshold=0.0, margin=0.0, **other):
    unit = "exact" if low is None else "training"
    values = {"estimate": estimate, "low": low, "high": high, "direction": direction}
    values |= {"threshold": threshold, "margin": margin, "unit": unit, "alpha": None if low is None else 0.05}
    return values | {"grade": None, "origin": "ours"} | other


@pytest.mark.parametrize(
    ("claim", "unit", "estimate", "condition"),
    [
        (record(0.394, 0.264, 0.492, "below", 0.8, grade=1), "percent", "39 % [26, 49]", "< 80 %*"),
        (record(0.0882, 0.0372, 0.160, "equal", 0.0, 0.25), "factor", "1.09 [1.04, 1.17]", "0.779 to 1.28"),
        (record(2.77, 2.27, 3.27, threshold=1), "decimal factor", "600 [200, 1,900]", "> 10"),
        (record(0.617, threshold=0.5), "binary factor", "1.53", "> 1.41"),
        (record(0.0928, 0.0321, 0.263, threshold=0.9), "percent", "9 % [3, 26]", "> 90 %"),
        (record(0.181, -0.171, 0.434), "points", "18 [-17, 43]", "> 0"),
        (record(3.66, 2.06, 4.46, "below", 1), "", "3.7 [2.1, 4.5]", "< 1"),
        (record(0.0, alpha=0.05), "", "0 (simulated)", "> 0"),
    ],
)
def test_estimates_and_criteria_are_converted(claim, unit, estimate, condition):
    assert (format_estimate(claim, unit), format_condition(claim, unit)) == (estimate, condition)


@pytest.mark.parametrize(
    ("claim", "unit", "estimate", "condition"),
    [
        (record(-0.5, threshold=-1e-9), "", "-0.5", "≥ 0"),
        (record(3e-16, direction="below", threshold=1e-9), "", "0", "= 0"),
        (record(3e-16, threshold=1e-9), "", "0", "> 0"),
        (record(-1e-14, threshold=-1e-10), "", "0", "≥ 0"),
        (record(1.78e-10, threshold=1e-12), "", "1.78×10⁻¹⁰", "> 0"),
        (record(9.09, direction="below", threshold=1e-6), "factor", "8,870", "≤ 1"),
    ],
)
def test_thresholds_that_allow_for_rounding_errors_are_shown_as_zero(claim, unit, estimate, condition):
    assert (format_estimate(claim, unit), format_condition(claim, unit)) == (estimate, condition)


def test_rounding_moves_no_number_to_the_other_side_of_the_threshold():
    assert format_estimate(record(1.3, 0.9996, 1.6, threshold=1)) == "1.3000 [0.9996, 1.6000]"
    assert format_estimate(record(0.999, 0.98, 1.0, threshold=0.979)) == "1.00 [0.98, 1.00]"


def test_units_are_monotonic_and_unknown_units_are_refused():
    assert format_estimate(record(math.log(2), math.log(1.5), math.log(3)), "factor") == "2.0 [1.5, 3.0]"
    expect_error("unit='metres': use one of ", format_estimate, record(1.0), "metres")
