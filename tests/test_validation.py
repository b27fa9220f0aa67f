"""Errors of invalid input, types of arguments and the decorator that checks them."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from refusals import expect_error
from trialogue.arrays import Integers, Reals, integer_tensor, parse_device, real_tensor, require_bools
from trialogue.errors import InputError, require_choice
from trialogue.validation import (
    Count,
    Different,
    Finite,
    Increasing,
    InstanceOf,
    Natural,
    NonNegative,
    Positive,
    PositiveShare,
    Probability,
    Several,
    Share,
    Some,
    check,
    integer_range,
    validated,
)

SQUARE = Annotated[Tensor, Reals("rows rows", least=0)]


@validated
def validated_function(
    count: Count = 1,
    share: Probability = 0.5,
    *,
    matrix: SQUARE | None = None,
    table: Annotated[Tensor, Reals("V*", infinite="negative")] | None = None,
    tokens: Annotated[Tensor, Integers("n", least=0, most=9, empty=True)] | None = None,
    places: Several[Natural] = (),
    shape: InstanceOf[torch.Size] | None = None,
    function: Callable[[int], int] | None = None,
    mode: Literal["fast", "exact"] = "fast",
    size: Literal[1, 2] = 1,
    word: Literal["it's", 'a "b" or c', "d, e"] = "it's",
    counts: Some[Count] = (1,),
    two: Different[Natural] = (1,),
    rising: Increasing[Natural] = (1,),
    unchecked: object = None,
) -> tuple[object, ...]:
    del size, word, counts, two, rising
    return count, share, matrix, table, tokens, places, function, mode, unchecked


def test_numpy_and_torch_numbers_are_converted():
    for integer in (1, np.int64(1), np.int32(1), torch.tensor(1)):
        assert validated_function(integer)[0] == 1
        assert type(validated_function(integer)[0]) is int
    for half in (0.5, np.float64(0.5), np.float32(0.5), torch.tensor(0.5)):
        assert validated_function(1, half)[1] == 0.5
    assert validated_function(places=[1, np.int64(2)])[5] == (1, 2)
    assert validated_function(places=np.array([1, 2]))[5] == (1, 2)
    assert validated_function(places=range(3))[5] == (0, 1, 2)


def test_arrays_are_converted_to_tensors_and_tensors_are_unchanged():
    single = torch.eye(2)
    assert validated_function(matrix=single)[2] is single
    for rows in ([[1, 0], [0, 1]], np.eye(2), np.eye(2, dtype=np.float32), torch.eye(2, dtype=torch.int64)):
        matrix = validated_function(matrix=rows)[2]
        assert isinstance(matrix, Tensor)
        assert matrix.dtype == torch.float64
        assert torch.equal(matrix, torch.eye(2, dtype=torch.float64))
    assert validated_function(table=torch.tensor([-math.inf, 0.0]))[3] is not None
    tokens = validated_function(tokens=np.array([3, 4], dtype=np.int32))[4]
    assert isinstance(tokens, Tensor)
    assert tokens.dtype == torch.int64


def test_gradients_pass_through():
    weights = torch.eye(2, requires_grad=True)
    matrix = validated_function(matrix=weights * 2)[2]
    assert isinstance(matrix, Tensor)
    matrix.sum().backward()
    assert weights.grad is not None


def test_arguments_of_other_types_are_not_checked():
    assert validated_function(unchecked="anything")[8] == "anything"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count=0: use at least 1"),
        ({"count": "1"}, "count='1': use an integer"),
        ({"count": 1.0}, "count=1.0: use an integer"),
        ({"count": True}, "count=True: use an integer"),
        ({"share": math.nan}, "share=nan: use a number below 1"),
        ({"share": "0.5"}, "share='0.5': use a number"),
        (
            {"matrix": torch.ones(2)},
            r"matrix=\(2,\): give finite numbers of at least 0, shape \(rows, rows\)",
        ),
        ({"matrix": torch.ones(2, 3)}, r"matrix=\(2, 3\)"),
        ({"matrix": [[1, 2], [3]]}, "matrix=.*give finite numbers"),
        ({"matrix": torch.full((1, 1), math.nan)}, "matrix=nan"),
        ({"matrix": -torch.ones(1, 1)}, "matrix=-1.0"),
        ({"matrix": torch.ones(1, 1, dtype=torch.complex64)}, "not complex"),
        ({"table": torch.ones(2, 3)}, r"table=\(2, 3\): give numbers below infinity, shape \(V, ...\)"),
        ({"table": torch.tensor([math.inf])}, "table=inf"),
        ({"tokens": [10]}, r"tokens=10: give integers from 0 to 9, shape \(n,\)"),
        ({"tokens": [0.5]}, "tokens="),
        ({"places": 3}, "places=3: give a list"),
        ({"places": [0, -1]}, "places=-1: item 2: use at least 0"),
        ({"shape": (1, 2)}, r"shape=\(1, 2\): give an instance of Size"),
        ({"function": 3}, "function=3: give a function"),
        ({"mode": "slow"}, "mode='slow': use one of fast, exact"),
        ({"size": 3}, "size=3: use one of 1, 2$"),
        ({"word": "its"}, """word='its': use one of it's, a "b" or c, d, e$"""),
        ({"counts": ()}, r"counts=\(\): must have at least 1 item$"),
        ({"two": (1, 1)}, r"two=\(1, 1\): values must be unique$"),
        ({"rising": (2, 1)}, r"rising=\(2, 1\): values must be strictly increasing$"),
    ],
)
def test_invalid_values_raise_one_line_errors(arguments, message):
    caught = expect_error(message, validated_function, **arguments)
    assert caught.field == next(iter(arguments))


def test_an_unknown_keyword_raises_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        validated_function(other=1)  # type: ignore[call-arg]


@validated
@dataclass(frozen=True, kw_only=True)
class Interval:
    """Class with a validated constructor."""

    low: Finite
    high: Finite = 1.0
    steps: Several[Count] = (1,)

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise InputError("low", self.low, f"use at most high = {self.high:g}")


def test_arguments_of_a_class_are_validated_before_post_init():
    assert Interval(low=0.0, steps=[2, 3]) == Interval(low=0.0, steps=(2, 3))
    for arguments, message in (
        ({"low": "a"}, "low='a': use a number"),
        ({"low": 2.0}, "low=2.0: use at most high = 1"),
        ({"low": 0.0, "steps": [0]}, "steps=0: item 1: use at least 1"),
    ):
        expect_error(re.escape(message), Interval, **arguments)


NOT_REAL_NUMBERS = ["1", b"1", None, True, np.True_, 1j, np.complex64(1), [1.0], np.ones(1), math.nan, object]
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
        (lambda: require_choice("c", "x", ("a", "b")), "c='x': use one of a, b"),
        (lambda: require_choice("c", ["a"], ("a", "b")), r"c=\['a'\]: use one of a, b"),
        (lambda: real_tensor("x", [[1, 2], [3]], "give a matrix"), r"x=\[\[1, 2\], \[3\]\]: give a matrix"),
        (lambda: real_tensor("x", [1j], "give numbers"), r"x=\[1j\]: give real numbers, not complex ones"),
        (lambda: integer_tensor("x", [0.5], "give ids"), r"x=\[0.5\]: give ids"),
        (lambda: integer_tensor("x", torch.ones(2) > 0, "give ids"), "x=torch.bool: give ids"),
        (lambda: require_bools("x", torch.ones(2), (2,), "give bools"), "x=torch.float32: give bools"),
        (lambda: require_bools("x", torch.ones(2) > 0, (3,), "give bools"), r"x=\(2,\): give bools"),
        (lambda: parse_device("nope"), "device='nope': it cannot be used here: "),
        (lambda: parse_device(True), "device=True: it cannot be used here: "),
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
    assert require_choice("c", "a", ("a", "b")) == "a"
    assert parse_device("cpu") == torch.device("cpu")
    assert real_tensor("x", np.arange(3)[::-1], "give numbers").tolist() == [2.0, 1.0, 0.0]
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert integer_tensor("x", frozen, "give ids").tolist() == [0, 1, 2]
