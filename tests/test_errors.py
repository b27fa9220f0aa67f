"""Validation of single values and of arrays."""

import math

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.arrays import checked_device, real_tensor, require_bools, whole_tensor
from trialogue.errors import one_of
from trialogue.validation import (
    Count,
    Natural,
    NonNegative,
    Positive,
    PositiveShare,
    Probability,
    Share,
    check,
    integer_range,
)

NOT_REAL_NUMBERS = [
    "1",
    b"1",
    None,
    True,
    np.True_,
    1j,
    np.complex64(1),
    [1.0],
    np.ones(1),
    math.nan,
    object,
]
NOT_INTEGERS = [*NOT_REAL_NUMBERS, 1.0, 1.5, np.float64(1), torch.tensor(1.0), torch.tensor(True), math.inf]
KINDS = [Positive, NonNegative, Share]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("value", NOT_REAL_NUMBERS, ids=repr)
def test_a_value_that_is_not_a_real_number_is_rejected(kind, value):
    assert expect_error(r"^field=.*: use ", check, "field", value, kind).value is value


@pytest.mark.parametrize("kind", KINDS, ids=repr)
@pytest.mark.parametrize("one", [1, 1.0, np.int64(1), np.float32(1), torch.tensor(1.0)], ids=repr)
def test_numbers_of_all_types_are_converted_to_float(kind, one):
    number = check("field", one, kind)
    assert number == 1.0
    assert type(number) is float


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
def test_a_value_that_is_not_an_integer_is_rejected(value):
    expect_error(r"^field=.*: use an integer", check, "field", value, Natural)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), torch.tensor(3)], ids=repr)
def test_integers_of_all_types_are_converted_to_int(value):
    number = check("field", value, integer_range(0, 3))
    assert number == 3
    assert type(number) is int


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check("n", 0, Count), "n=0: use at least 1"),
        (lambda: check("n", 4, integer_range(1, 3)), "n=4: use at most 3"),
        (lambda: check("n", 0.5, Count, "draw one"), "n=0.5: draw one"),
        (lambda: check("x", 10**400, Positive), r"x=1000.* \.\.\. 000.*: use a number"),
        (lambda: check("x", 0, Positive), "x=0: use a number above 0"),
        (lambda: check("x", math.inf, Positive), "x=inf: use a finite number"),
        (lambda: check("x", -1e-9, NonNegative), "x=-1e-09: use at least 0"),
        (lambda: check("p", -0.1, Share), "p=-0.1: use at least 0"),
        (lambda: check("p", 0, PositiveShare), "p=0: use a number above 0"),
        (lambda: check("p", 1, Probability), "p=1: use a number below 1"),
        (lambda: check("b", "no", bool), "b='no': use True or False"),
        (lambda: one_of("c", "x", ("a", "b")), "c='x': use one of a, b"),
        (lambda: one_of("c", ["a"], ("a", "b")), r"c=\['a'\]: use one of a, b"),
        (lambda: real_tensor("x", [[1, 2], [3]], "give a matrix"), r"x=\[\[1, 2\], \[3\]\]: give a matrix"),
        (lambda: real_tensor("x", [1j], "give numbers"), r"x=\[1j\]: give real numbers, not complex ones"),
        (lambda: whole_tensor("x", [0.5], "give ids"), r"x=\[0.5\]: give ids"),
        (lambda: whole_tensor("x", torch.ones(2) > 0, "give ids"), "x=torch.bool: give ids"),
        (lambda: require_bools("x", torch.ones(2), (2,), "give bools"), "x=torch.float32: give bools"),
        (lambda: require_bools("x", torch.ones(2) > 0, (3,), "give bools"), r"x=\(2,\): give bools"),
        (lambda: checked_device("nope"), "device='nope': it cannot be used here: "),
        (lambda: checked_device(True), "device=True: it cannot be used here: "),
        (
            lambda: check("x", torch.zeros(2, 2), Positive),
            r"x=tensor\(\[\[0., 0.\], \[0., 0.\]\]\): use a number",
        ),
    ],
)
def test_the_error_contains_field_value_and_hint(call, message):
    error = expect_error(f"^{message}", call)
    assert len(str(error)) < 400


def test_valid_values_are_returned():
    assert check("b", np.True_, bool) is True
    assert one_of("c", "a", ("a", "b")) == "a"
    assert checked_device("cpu") == torch.device("cpu")
    assert real_tensor("x", np.arange(3)[::-1], "give numbers").tolist() == [2.0, 1.0, 0.0]
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert whole_tensor("x", frozen, "give ids").tolist() == [0, 1, 2]
