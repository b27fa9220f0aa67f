"""Plain Python functions as verifiers, and the threshold that turns a value into a verdict."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Literal, Self, TypeVar, get_args

import torch
from torch import Tensor

from trialogue.errors import (
    InputError,
    non_negative_number,
    one_of,
    positive_number,
    reason,
    require_function,
    truth_value,
)
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Verifier
from trialogue.verifiers.answers import fault, overdue, stated_most, value
from trialogue.verifiers.file_function import FileFunction
from trialogue.verifiers.stop_strings import StopStrings
from trialogue.verifiers.timeout import Overdue, call_within
from trialogue.verifiers.users_code import CRASHES, contained, raised_at

Argument = TypeVar("Argument")
Scope = Literal["sequence", "completion"]

VerifierLike = Verifier | Callable[[tuple[int, ...]], float | bool]
"""A verifier, or a function of a prefix: prompt and completion."""


class FunctionVerifier(Verifier):
    """Calls `function` row by row with the prefix as a tuple of ints: prompt and completion, no BOS.

    With `scope="completion"` it is given the completion alone. The function returns a truth value, a probability or any
    finite non-negative number, no greater than `most`: by default 1 of a function that is annotated to return bool.
    With `whole` it judges complete sequences only, and a prefix counts 1. A call may take `timeout` seconds. What it
    prints in the main thread goes to standard error.

    Raises `InputError`, when asked for values, that names the function, what it was given and what is wrong, where
    the function raises, takes too long, or returns something else.
    """

    def __init__(
        self,
        function: Callable[[tuple[int, ...]], float | bool],
        scope: Scope = "sequence",
        *,
        whole: bool = False,
        timeout: float | None = None,
        most: float | None = None,
    ) -> None:
        require_function("function", function, "give a function of a prefix (tuple of ints)")
        self._function, self.scope = function, one_of("scope", scope, get_args(Scope))
        self._whole, self._timeout = truth_value("whole", whole), checked_timeout(timeout)
        self.most = stated_most(function) if most is None else positive_number("most", most)
        if self._whole:
            self.most = max(self.most, 1.0)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        judged = list(_judged(decoding, rows, self.scope))
        asked = torch.tensor([ended or not self._whole for _, ended in judged], dtype=torch.bool)
        arguments = [tuple(tokens) for tokens, ended in judged if ended or not self._whole]
        values = torch.ones(len(rows), dtype=torch.float64)
        values[asked] = torch.tensor(
            _values(self._function, arguments, self._timeout, self.most), dtype=torch.float64
        )
        return values


class TextVerifier(Verifier):
    """As `FunctionVerifier`, for a function of text: that of the completion, or of prompt and completion.

    The bytes of a prefix's last character are held back while it is not complete, so that the text of a prefix is a
    prefix of the text; special tokens and the end of sequence are no part of it, and neither is a stop string for the
    verifier that `up_to` returns.
    """

    def __init__(
        self,
        function: Callable[[str], float | bool],
        tokenization: Tokenization,
        scope: Scope = "completion",
        *,
        whole: bool = False,
        timeout: float | None = None,
        most: float | None = None,
    ) -> None:
        require_function("function", function, "give a function of a text")
        self._function, self._tokenization = function, tokenization
        self.scope = one_of("scope", scope, get_args(Scope))
        self._whole, self._timeout = truth_value("whole", whole), checked_timeout(timeout)
        self.most = stated_most(function) if most is None else positive_number("most", most)
        if self._whole:
            self.most = max(self.most, 1.0)
        self._stops: StopStrings | None = None

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """The verifier of texts up to the first of the strings `stop`, at which `generate` is to stop.

        The end of a prefix is held back where it may be the beginning of one.
        """
        stopped = copy(self)
        stopped._stops = StopStrings(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        asked, texts = torch.zeros(len(rows), dtype=torch.bool), []
        before = [0] * len(rows) if self.scope == "completion" else decoding.start[rows].tolist()
        judged = zip(before, _judged(decoding, rows, self.scope), strict=True)
        for place, (prompt, (tokens, ended)) in enumerate(judged):
            if self._whole and not ended:
                continue
            asked[place] = True
            if ended and tokens and tokens[-1] == decoding.eos:
                tokens = tokens[:-1]
            text = self._tokenization.text(tokens, ended)
            if self._stops is not None:
                completion = self._tokenization.text(tokens[prompt:], ended)
                behind = len(completion) - len(self._stops.before(completion, ended))
                text = text[: len(text) - behind]
            texts.append(text)
        values = torch.ones(len(rows), dtype=torch.float64)
        values[asked] = torch.tensor(
            _values(self._function, texts, self._timeout, self.most), dtype=torch.float64
        )
        return values


def _judged(decoding: Decoding, rows: Tensor, scope: Scope) -> Iterator[tuple[list[int], bool]]:
    """Of each row, the tokens that a verifier of `scope` judges, and whether the sequence is complete."""
    lengths, complete = decoding.lengths[rows].tolist(), decoding.complete[rows].tolist()
    starts = decoding.start[rows].tolist() if scope == "completion" else [0] * len(lengths)
    sequences = decoding.tokens[rows].tolist()
    for tokens, start, length, ended in zip(sequences, starts, lengths, complete, strict=True):
        yield tokens[start:length], ended


def answer_of(function: Callable[[Argument], Any], argument: Argument, timeout: float | None) -> Any:
    """What a user's `function` answers, within `timeout` seconds; raises `InputError` that names it where it fails."""
    try:
        with contained():
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


def checked_timeout(timeout: float | None) -> float | None:
    """Return `timeout` in seconds; raises `InputError` where it is neither a positive number nor None."""
    if timeout is None:
        return None
    return positive_number("timeout", timeout, "use a positive number of seconds, or None for no limit")


class Threshold(Verifier):
    """1 where the value of `verifier` is at least `threshold`, else 0."""

    def __init__(self, verifier: Verifier, threshold: float) -> None:
        verifier = as_verifier(verifier)
        self.most = 1.0
        self._verifier, self._threshold = verifier, non_negative_number("threshold", threshold)
        self.scope, self.layers = verifier.scope, verifier.layers
        self.notes, self.parser = verifier.notes, verifier.parser

    def up_to(self, stop: str | Sequence[str]) -> "Threshold":
        """The same of a verifier that judges, where it judges text, what comes before the first string of `stop`."""
        return Threshold(self._verifier.up_to(stop), self._threshold)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Verdicts (n,) float64 on the sequences in `rows` (n,)."""
        return self._verdicts(self._verifier.values(decoding, rows))

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Verdicts (n, vocab) on all one-token continuations, or None where only `values` can tell."""
        values = self._verifier.children(decoding, rows)
        return None if values is None else self._verdicts(values)

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """As `verifier` tells them."""
        return self._verifier.residuals(decoding, rows)

    def _verdicts(self, values: Tensor) -> Tensor:
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
        self.scope = getattr(thing, "scope", Verifier.scope)
        self.most = getattr(thing, "most", Verifier.most)
        self.layers = getattr(thing, "layers", Verifier.layers)
        self.parts = tuple(as_verifier(part) for part in getattr(thing, "parts", Verifier.parts))
        self.notes = getattr(thing, "notes", Verifier.notes)
        self.parser = getattr(thing, "parser", Verifier.parser)

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
