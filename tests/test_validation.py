"""Types of arguments and the decorator that checks them."""

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
from trialogue.arrays import Integers, Reals
from trialogue.errors import InputError
from trialogue.validation import (
    Count,
    Different,
    Finite,
    Increasing,
    InstanceOf,
    Natural,
    Probability,
    Several,
    Some,
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
