"""Random arguments for fuzz tests, with at most one fault."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from trialogue.errors import InputError
from trialogue.randomness import numpy_generator

Result = TypeVar("Result")
CASES = 80
HARMLESS = ("nothing", "strided", "int32", "no rows")
INDEX_FAULTS = (
    *HARMLESS,
    "too low",
    "too high",
    "far too high",
    "least of int64",
    "float64",
    "bool",
    "flat",
    "deep",
    "more rows",
    "fewer columns",
    "one row",
)


class Draw:
    """Random arguments of one case. The fault `fault` is applied to the tensors passed to `with_index_fault`."""

    def __init__(self, seed: int, fault: str) -> None:
        self.rng = numpy_generator(seed, "fuzzing")
        self.fault = fault

    def integer(self, least: int, most: int) -> int:
        """Return an integer from `least` to `most`."""
        return int(self.rng.integers(least, most + 1))

    def indices(self, shape: tuple[int, ...], size: int) -> Tensor:
        """Return indices below `size`."""
        return torch.from_numpy(self.rng.integers(0, size, shape))

    def floats(self, shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
        """Return standard normal numbers."""
        return torch.from_numpy(self.rng.standard_normal(shape)).to(dtype)

    def with_index_fault(self, values: Tensor, size: int) -> Tensor:
        """Return the indices with the fault of this case, where valid indices are below `size`."""
        outside = {"too low": -1, "too high": size, "far too high": 10**12, "least of int64": -(2**63)}
        if self.fault in outside and values.numel():
            values = values.clone()
            values.view(-1)[self.integer(0, values.numel() - 1)] = outside[self.fault]
        return self.with_tensor_fault(values)

    def with_tensor_fault(self, values: Tensor) -> Tensor:
        """Return `values` with the dtype or shape fault of this case, if any."""
        changes: dict[str, Callable[[], Tensor]] = {
            "strided": lambda: values.repeat_interleave(2, -1)[..., ::2],
            "int32": lambda: values.int(),
            "no rows": lambda: values[:0],
            "float64": lambda: values.double(),
            "bool": lambda: values.bool(),
            "flat": lambda: values.flatten() if values.ndim > 1 else values[:1].squeeze(0),
            "deep": lambda: values[..., None],
            "more rows": lambda: torch.cat((values, values, values[:1])),
            "fewer columns": lambda: values[..., :-1],
            "one row": lambda: values[:1],
        }
        return changes.get(self.fault, lambda: values)()


def fuzz(
    faults: tuple[str, ...] = ("nothing",), *more: st.SearchStrategy[object]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on `CASES` random `Draw`s, each with one of the `faults`, and on values of `more`."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        draws = st.builds(Draw, st.integers(0, 2**31), st.sampled_from(faults))
        checks = list(HealthCheck)
        fuzzed = settings(
            max_examples=CASES, derandomize=True, deadline=None, database=None, suppress_health_check=checks
        )(given(draws, *more)(test))
        for number, fault in enumerate(faults if not more else ()):
            fuzzed = example(Draw(number, fault))(fuzzed)
        return fuzzed

    return decorate


def result_or_none(call: Callable[[], Result], required: bool = False) -> Result | None:
    """Return the result of `call`, or None if it raises an `InputError` of one line. Other errors propagate.

    With `required`, the call must return a result.
    """
    try:
        return call()
    except InputError as error:
        refusal = error
    assert not required, refusal
    assert "\n" not in str(refusal)
    assert refusal.hint
    return None


def log_softmax(weights: np.ndarray) -> np.ndarray:
    """Return logarithms of weights (..., k), normalised over the last dimension."""
    shifted = weights - weights.max(-1, keepdims=True)
    normalised: np.ndarray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return normalised
