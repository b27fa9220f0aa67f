"""Verifiers that call Python functions, and a threshold on values."""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

import torch
from torch import Tensor

from trialogue.errors import InputError, describe_error
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Target, Verifier
from trialogue.validation import NonNegative, Positive, validated
from trialogue.verifiers.functions.answers import annotated_bound, call_error, timeout_error, validate_value
from trialogue.verifiers.functions.timeout import CallTimeoutError, call_within
from trialogue.verifiers.functions.users_code import CRASHES, format_error_location, output_to_stderr
from trialogue.verifiers.languages.stop_strings import StopStrings
from trialogue.verifiers.wrapping import WrappingVerifier

Argument = TypeVar("Argument")
Scope = Literal["sequence", "completion"]

VerifierLike = Verifier | Callable[[tuple[int, ...]], float | bool]
"""A verifier, or a function of a prefix (the token ids of prompt and completion)."""


@runtime_checkable
class BatchedFunction(Protocol):
    """Protocol of functions that can be called for several arguments at once."""

    def call_all(self, arguments: Sequence[Any], timeout: float | None) -> Sequence[Any]:
        """Return the result for each of `arguments`, with at most `timeout` seconds for each call."""
        ...


@validated
class FunctionVerifier(Verifier):
    """Verifier that calls a Python function with the token ids of each prefix.

    The argument is a tuple of ints: prompt and completion, without BOS. In the main thread, output printed by the
    function is redirected to standard error.

    Args:
        function: Function that returns a bool, a probability, or any finite non-negative number.
        scope: "sequence" passes prompt and completion (default), "completion" only the completion.
        whole: Whether to call the function for complete sequences only. Prefixes then have the value 1.
        timeout: Maximum duration of a call in seconds (default: no limit).
        most: Upper bound of the function's values (default: 1 if it is annotated to return bool, else infinity).

    Raises:
        InputError: During sampling, if the function raises an exception, exceeds the timeout, or returns an invalid
            value. The error names the function and its argument.

    Example:
        >>> from trialogue.verifiers import FunctionVerifier
        >>> verifier = FunctionVerifier(lambda tokens: sum(tokens) % 2 == 0, whole=True)
    """

    _kind = "verifier"

    def __init__(
        self,
        function: Callable[[Any], float | bool],
        scope: Scope = "sequence",
        *,
        whole: bool = False,
        timeout: Positive | None = None,
        most: Positive | None = None,
    ) -> None:
        self._function, self.scope, self._whole, self._timeout = function, scope, whole, timeout
        self.most = annotated_bound(function) if most is None else most
        if whole:
            self.most = max(self.most, 1.0)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Call the function for some sequences of a batch, and return its results.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64, one for each index in `rows`.
        """
        complete, starts = decoding.complete[rows].tolist(), decoding.start[rows].tolist()
        sequences = zip(decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist(), strict=True)
        indices, arguments = list[int](), list[Any]()
        for index, (tokens, length) in enumerate(sequences):
            if complete[index] or not self._whole:
                indices.append(index)
                arguments.append(
                    self._argument(tokens[:length], starts[index], complete[index], decoding.eos)
                )
        values = torch.ones(len(rows), dtype=torch.float64)
        values[indices] = torch.tensor(self._results(arguments), dtype=torch.float64)
        return values

    def _results(self, arguments: Sequence[Any]) -> list[float]:
        """Return the result of the function for each of `arguments`, checked and converted to float."""
        function = self._function
        results: Iterable[Any]
        if isinstance(function, BatchedFunction):
            results = function.call_all(arguments, self._timeout)
        else:
            results = (call_function(function, argument, self._timeout, self._kind) for argument in arguments)
        pairs = zip(arguments, results, strict=True)
        return [self._checked(argument, result) for argument, result in pairs]

    def _checked(self, argument: Any, result: Any) -> float:
        """Return a result of the function as float. Raises `InputError` if it is not a valid value."""
        return validate_value(self._function, argument, result, self.most)

    def _argument(self, tokens: list[int], start: int, complete: bool, eos: int | None) -> Any:
        """Return the argument of the function for a sequence whose completion begins at index `start`."""
        del complete, eos
        return tuple(tokens[start:] if self.scope == "completion" else tokens)


@validated
class TextVerifier(FunctionVerifier):
    """Verifier that calls a Python function with the text of each prefix.

    An incomplete character at the end of a prefix is omitted, so the text of a prefix is always a prefix of the text of
    its continuations. The text does not contain special tokens or the end-of-sequence token.

    Args:
        function: Function that returns a bool, a probability, or any finite non-negative number.
        tokenization: Tokenization that converts token ids to text.
        scope: "completion" passes the text of the completion (default), "sequence" the text of prompt and completion.
        whole: Whether to call the function for complete sequences only. Prefixes then have the value 1.
        timeout: Maximum duration of a call in seconds (default: no limit).
        most: Upper bound of the function's values (default: 1 if it is annotated to return bool, else infinity).

    Raises:
        InputError: During sampling, under the same conditions as for `FunctionVerifier`.
    """

    def __init__(
        self,
        function: Callable[[str], float | bool],
        tokenization: Tokenization,
        scope: Scope = "completion",
        *,
        whole: bool = False,
        timeout: Positive | None = None,
        most: Positive | None = None,
    ) -> None:
        super().__init__(function, scope, whole=whole, timeout=timeout, most=most)
        self._tokenization = tokenization
        self._stops: StopStrings | None = None

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy that ignores the text from the first stop string onwards.

        While a prefix ends with the possible beginning of a stop string, the function does not receive this end.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped._stops = StopStrings(stop)
        return stopped

    def _argument(self, tokens: list[int], start: int, complete: bool, eos: int | None) -> str:
        if self.scope == "completion":
            tokens, start = tokens[start:], 0
        if complete and tokens and tokens[-1] == eos:
            tokens = tokens[:-1]
        text = self._tokenization.text(tokens, complete)
        if self._stops is None:
            return text
        completion = self._tokenization.text(tokens[start:], complete)
        removed = len(completion) - len(self._stops.before(completion, complete))
        return text[: len(text) - removed]


def call_function(
    function: Callable[[Argument], Any], argument: Argument, timeout: float | None, kind: str = "verifier"
) -> Any:
    """Call a function of the user, and return its result.

    Args:
        function: Function to call.
        argument: Argument of the call.
        timeout: Maximum duration in seconds, or None for no limit.
        kind: What the function computes, for error messages (default: "verifier").

    Raises:
        InputError: If the function raises an exception or exceeds the timeout. The error names the function.
    """
    try:
        with output_to_stderr():
            return function(argument) if timeout is None else call_within(timeout, function, argument)
    except CallTimeoutError:
        raise timeout_error(function, argument, timeout or 0.0, kind) from None
    except CRASHES as error:
        # The location is searched for in the file of the function inside of its decorators.
        code = getattr(inspect.unwrap(function), "__code__", None)
        where = format_error_location(error, None if code is None else code.co_filename)
        raise call_error(function, argument, f"it raised {describe_error(error)}{where}", kind) from error


@validated
class Threshold(WrappingVerifier):
    """Verifier that returns 1 if the value of another verifier is at least a threshold, else 0.

    The values exp(v) of a `Target`, or of a product with one, are compared by their logarithms, so they do not
    underflow.

    Args:
        verifier: Verifier or function of a prefix.
        threshold: Smallest accepted value, at least 0.
    """

    def __init__(self, verifier: Any, threshold: NonNegative) -> None:
        super().__init__(as_verifier(verifier))
        self.most, self._threshold = 1.0, threshold
        self._has_target = _has_target(self._verifier)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return whether the values of some sequences of a batch are at least the threshold.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Verdicts (n,) of value 1 or 0, one for each index in `rows`.
        """
        if not self._has_target:
            return super().values(decoding, rows)
        log_values = _log_values(self._verifier, decoding, rows)
        accepted = log_values >= (math.log(self._threshold) if self._threshold else -math.inf)
        # NaN and infinity are returned unchanged, because the caller reports them as errors.
        return torch.where(log_values < math.inf, accepted.double(), log_values)

    def _converted(self, values: Tensor) -> Tensor:
        # NaN is returned unchanged, because the caller reports it as an error.
        return torch.where(values.isnan(), values, (values >= self._threshold).to(values.dtype))


def _has_target(verifier: Verifier) -> bool:
    """Return whether a verifier is a `Target` or a product with one."""
    return isinstance(verifier, Target) or any(map(_has_target, verifier.parts))


def _log_values(verifier: Verifier, decoding: Decoding, rows: Tensor) -> Tensor:
    """Return the logarithms (n,) float64 of the values of a verifier, a target, or a product of them."""
    if isinstance(verifier, Target):
        return verifier.log_values(decoding, rows).double()
    if not verifier.parts:
        return verifier.values(decoding, rows).double().log()
    log_values = torch.zeros(len(rows), dtype=torch.float64)
    for part in verifier.parts:
        # Later factors are evaluated only for sequences to which the factors before give a positive value.
        open_ = (log_values != -math.inf).nonzero()[:, 0]
        if len(open_):
            log_values[open_] += _log_values(part, decoding, rows[open_])
    return log_values


def is_verifier(thing: Any) -> bool:
    """Return whether an object can be used as a verifier without conversion, because it has a method `values`.

    Args:
        thing: Any object. The result is False for functions without such a method.
    """
    return hasattr(thing, "values") and not isinstance(thing, type)


def as_verifier(verifier: Any) -> Verifier:
    """Convert a function or an object to a `Verifier`.

    Args:
        verifier: A `Verifier`, which is returned unchanged; a function of a prefix (tuple of ints), which becomes a
            `FunctionVerifier`; or another object with a method `values`. Attributes that such an object does not define
            have the defaults of `Verifier`.

    Raises:
        InputError: If `verifier` is none of these, or is a class instead of an instance.
    """
    if isinstance(verifier, type):
        raise InputError("verifier", verifier.__name__, f"give an instance: {verifier.__name__}()")
    if isinstance(verifier, Verifier):
        return verifier
    if is_verifier(verifier):
        return _VerifierAdapter(verifier)
    if callable(verifier):
        return FunctionVerifier(verifier)
    raise InputError("verifier", verifier, "pass a Verifier or a function of a prefix (tuple of ints)")


class _VerifierAdapter(Verifier):
    """Adapter that makes an object with a method `values` a `Verifier`."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing
        for name in ("scope", "most", "layers", "has_mask", "notes", "parser"):
            setattr(self, name, getattr(thing, name, getattr(Verifier, name)))
        self.parts = tuple(as_verifier(part) for part in getattr(thing, "parts", ()))

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        values: Tensor = self._thing.values(decoding, rows)
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        if not hasattr(self._thing, "children"):
            return super().children(decoding, rows)
        values: Tensor | None = self._thing.children(decoding, rows)
        return values

    def up_to(self, stop: str | Sequence[str]) -> Verifier:
        return as_verifier(self._thing.up_to(stop)) if hasattr(self._thing, "up_to") else self
