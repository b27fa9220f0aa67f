"""Plain Python functions as verifiers, and the threshold that turns a value into a verdict."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Literal, Self, TypeVar

import torch
from torch import Tensor

from trialogue.errors import InputError, reason
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import NonNegative, Positive, validated
from trialogue.verifiers.answers import fault, overdue, stated_most, value
from trialogue.verifiers.file_function import FileFunction
from trialogue.verifiers.stop_strings import StopStrings
from trialogue.verifiers.timeout import Overdue, call_within
from trialogue.verifiers.users_code import CRASHES, output_to_stderr, raised_at
from trialogue.verifiers.wrapping import WrappingVerifier

Argument = TypeVar("Argument")
Scope = Literal["sequence", "completion"]

VerifierLike = Verifier | Callable[[tuple[int, ...]], float | bool]
"""A verifier, or a function of a prefix: prompt and completion."""


@validated
class FunctionVerifier(Verifier):
    """Call a function row by row with the prefix as a tuple of ints: prompt and completion, without BOS.

    What the function prints in the main thread goes to standard error.

    Args:
        function: Function that returns a truth value, a probability, or any finite non-negative number.
        scope: "sequence" passes prompt and completion, "completion" the completion alone.
        whole: Whether only complete sequences are judged. A prefix then counts 1.
        timeout: Longest call in seconds (default: no limit).
        most: Greatest value of the function (default: 1 if it is annotated to return bool, else infinity).

    Raises:
        InputError: While sampling, if the function raises, takes too long, or returns something else. The error names
            the function and its argument.
    """

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
        self.most = stated_most(function) if most is None else most
        if whole:
            self.most = max(self.most, 1.0)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return values (n,) float64 of the sequences in `rows` (n,)."""
        complete, starts = decoding.complete[rows].tolist(), decoding.start[rows].tolist()
        sequences = zip(decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist(), strict=True)
        places, arguments = list[int](), list[Any]()
        for place, (tokens, length) in enumerate(sequences):
            if complete[place] or not self._whole:
                places.append(place)
                arguments.append(
                    self._argument(tokens[:length], starts[place], complete[place], decoding.eos)
                )
        values = torch.ones(len(rows), dtype=torch.float64)
        answers = _values(self._function, arguments, self._timeout, self.most)
        values[places] = torch.tensor(answers, dtype=torch.float64)
        return values

    def _argument(self, tokens: list[int], start: int, complete: bool, eos: int | None) -> Any:
        """Return what the function is called with for a sequence whose completion begins at `start`."""
        del complete, eos
        return tuple(tokens[start:] if self.scope == "completion" else tokens)


@validated
class TextVerifier(FunctionVerifier):
    """Call a function row by row with the text of the completion, or of prompt and completion.

    The bytes of a prefix's last character are held back while it is not complete, so that the text of a prefix is a
    prefix of the text. Special tokens and the end of sequence are no part of the text, and neither is a stop string for
    the verifier that `up_to` returns. The other arguments are those of `FunctionVerifier`.
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
        """Return the verifier of texts up to the first of the strings `stop`.

        The end of a prefix is held back if it may be the beginning of one.
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
        behind = len(completion) - len(self._stops.before(completion, complete))
        return text[: len(text) - behind]


def answer_of(function: Callable[[Argument], Any], argument: Argument, timeout: float | None) -> Any:
    """What a user's `function` answers, within `timeout` seconds; raises `InputError` that names it where it fails."""
    try:
        with output_to_stderr():
            return function(argument) if timeout is None else call_within(timeout, function, argument)
    except Overdue:
        raise overdue(function, argument, timeout or 0.0) from None
    except CRASHES as error:
        # Through decorators, which keep what they are put around.
        code = getattr(inspect.unwrap(function), "__code__", None)
        where = raised_at(error, None if code is None else code.co_filename)
        raise fault(function, argument, f"it raised {reason(error)}{where}") from error


def _values(
    function: Callable[[Argument], Any], arguments: Sequence[Argument], timeout: float | None, most: float
) -> list[float]:
    """The values that `function` answers about each of `arguments`."""
    answers: Iterable[Any]
    if isinstance(function, FileFunction):
        answers = function.answers(arguments, timeout)
    else:
        answers = (answer_of(function, argument, timeout) for argument in arguments)
    told = zip(arguments, answers, strict=True)
    return [value(function, argument, answer, most) for argument, answer in told]


@validated
class Threshold(WrappingVerifier):
    """1 where the value of `verifier` is at least `threshold`, else 0."""

    def __init__(self, verifier: Any, threshold: NonNegative) -> None:
        super().__init__(as_verifier(verifier))
        self.most, self._threshold = 1.0, threshold

    def _converted(self, values: Tensor) -> Tensor:
        # A NaN is neither above nor below: pass it on, to be reported.
        return torch.where(values.isnan(), values, (values >= self._threshold).to(values.dtype))


def is_verifier(thing: Any) -> bool:
    """Whether `thing` is a verifier, by name or by having a method `values`."""
    return hasattr(thing, "values") and not isinstance(thing, type)


def as_verifier(verifier: Any) -> Verifier:
    """A verifier as it is; a function of a prefix (a tuple of ints), or an object with a method `values`, as one.

    What such an object does not say of itself has the default that `Verifier` states. Raises `InputError` for anything
    else.
    """
    if isinstance(verifier, type):
        raise InputError("verifier", verifier.__name__, f"give an instance: {verifier.__name__}()")
    if isinstance(verifier, Verifier):
        return verifier
    if is_verifier(verifier):
        return _Judging(verifier)
    if callable(verifier):
        return FunctionVerifier(verifier)
    raise InputError("verifier", verifier, "give a Verifier or a function of a prefix (tuple of ints)")


class _Judging(Verifier):
    """An object with a method `values`, as a verifier."""

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
