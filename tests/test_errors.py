"""The one place where numbers of the API are checked."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from trialogue.arrays import checked_device, real_tensor, require_bools, whole_tensor
from trialogue.errors import (
    InputError,
    non_negative_number,
    one_of,
    positive_number,
    probability,
    truth_value,
    whole_number,
)

NO_NUMBERS = [
    "1",
    b"1",
    None,
    True,
    np.True_,
    1j,
    np.complex64(1),
    [1.0],
    np.ones(1),
    torch.ones(1),
    math.nan,
    object,
]
NO_WHOLE_NUMBERS = [*NO_NUMBERS, 1.0, 1.5, np.float64(1), torch.tensor(1.0), torch.tensor(True), math.inf]
CHECKS: list[Callable[[str, object], object]] = [
    positive_number,
    non_negative_number,
    probability,
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_single_real_number_is_refused(
    check: Callable[[str, object], object], value: object
) -> None:
    with pytest.raises(InputError, match=r"^field=.*: use ") as error:
        check("field", value)
    assert error.value.value is value


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "one", [1, 1.0, np.int64(1), np.float32(1), torch.tensor(1.0), Fraction(1)], ids=repr
)
def test_numbers_of_all_kinds_are_floats(check: Callable[[str, object], object], one: object) -> None:
    number = check("field", one)
    assert number == 1.0
    assert type(number) is float


@pytest.mark.parametrize("value", NO_WHOLE_NUMBERS, ids=repr)
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"^field=.*: use a whole number of at least 0"):
        whole_number("field", value, 0)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), torch.tensor(3)], ids=repr)
def test_whole_numbers_are_ints(value: object) -> None:
    number = whole_number("field", value, 0, 3)
    assert number == 3
    assert type(number) is int


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: whole_number("n", 0, 1), "n=0: use at least 1"),
        (lambda: whole_number("n", 4, 1, 3), "n=4: use at most 3"),
        (lambda: whole_number("n", 0.5, 1, hint="draw one"), "n=0.5: draw one"),
        (lambda: positive_number("x", 10**400), r"x=1000.* \.\.\. 000.*: use a finite number"),
        (lambda: positive_number("x", 0), "x=0: use a finite number above 0"),
        (lambda: positive_number("x", math.inf), "x=inf: use a finite number above 0"),
        (lambda: non_negative_number("x", -1e-9), "x=-1e-09: use a finite number of at least 0"),
        (lambda: probability("p", -0.1), "p=-0.1: use a probability of at least 0 and at most 1"),
        (lambda: probability("p", 0, zero=False), "p=0: use a probability above 0 and at most 1"),
        (lambda: probability("p", 1, one=False), "p=1: use a probability of at least 0 and below 1"),
        (lambda: probability("p", 1, zero=False, one=False), "p=1: use a probability above 0 and below 1"),
        (lambda: truth_value("b", "no"), "b='no': use True or False"),
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
            lambda: positive_number("x", torch.zeros(2, 2)),
            r"x=tensor\(\[\[0., 0.\], \[0., 0.\]\]\): use a finite number",
        ),
    ],
)
def test_the_error_names_field_value_and_mend(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as error:
        call()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_what_is_right_comes_back() -> None:
    assert truth_value("b", np.True_) is True
    assert one_of("c", "a", ("a", "b")) == "a"
    assert checked_device("cpu") == torch.device("cpu")
    assert real_tensor("x", np.arange(3)[::-1], "give numbers").tolist() == [2.0, 1.0, 0.0]
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert whole_tensor("x", frozen, "give ids").tolist() == [0, 1, 2]
