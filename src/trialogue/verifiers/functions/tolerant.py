"""Verifiers that reject a sequence if its evaluation raises an exception, instead of ending the run."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, describe_error
from trialogue.oracles import Decoding, Target, Verifier
from trialogue.verifiers.combination import Product, list_factors
from trialogue.verifiers.functions.users_code import format_error_location
from trialogue.verifiers.wrapping import WrappingVerifier

Call = Callable[[Decoding, Tensor], Tensor | None]
_MOST = 1 << 16


class _ChildErrors(NamedTuple):
    """How often a verifier raised on the one-token continuations of a sequence, and the first message."""

    number: int
    first: str


class ErrorLog:
    """Error messages that verifiers have raised during sampling, by token sequence.

    Args:
        most: Maximum number of sequences to store. The oldest are discarded. The same limit holds for the errors of the
            continuations of a sequence.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._messages, self._child_errors = dict[bytes, str](), dict[bytes, _ChildErrors]()

    def __bool__(self) -> bool:
        """Whether any message is stored."""
        return bool(self._messages)

    def note(self, tokens: Tensor, start: int, message: str) -> None:
        """Store the error message of a verifier for a sequence, unless a message is already stored for it.

        Args:
            tokens: Token ids (length,) of prompt and completion.
            start: Length of the prompt.
            message: Error message.
        """
        key = _key(tokens, start)
        if key in self._messages:
            return
        self._messages[key] = message
        if len(tokens) > start:
            # If every continuation is rejected by an error, the sample ends at their parent, so it is recorded there.
            parent = _key(tokens[:-1], start)
            errors = self._child_errors.pop(parent, _ChildErrors(0, message))
            self._child_errors[parent] = errors._replace(number=errors.number + 1)
        for table in (self._messages, self._child_errors):
            while len(table) > self._most:
                del table[next(iter(table))]

    def of(self, tokens: Tensor, start: int, failed: bool) -> str | None:
        """Return the stored error message for a sequence.

        Args:
            tokens: Token ids (length,) of prompt and completion.
            start: Length of the prompt.
            failed: Whether the sample ended because no continuation was left. In this case, errors of its one-token
                continuations are summarised if the sequence itself has no message.

        Returns:
            The message, or None if no error is stored.
        """
        key = _key(tokens, start)
        if key in self._messages or not failed or key not in self._child_errors:
            return self._messages.get(key)
        number, first = self._child_errors[key]
        return (
            f"1 continuation raised: {first}"
            if number == 1
            else f"{number} continuations raised, the first: {first}"
        )


def _key(tokens: Tensor, start: int) -> bytes:
    return start.to_bytes(8, "little") + tokens.cpu().numpy().tobytes()


def reject_on_error(verifier: Verifier, raised: ErrorLog) -> Verifier:
    """Wrap a verifier so that it rejects a sequence (value 0) instead of raising an exception.

    Each factor of a product is wrapped separately. Sequences for which a target raises have the log-value -inf.
    Out-of-memory errors and interruptions are not caught.

    Args:
        verifier: Verifier that may raise exceptions.
        raised: Object in which the error messages are stored.
    """
    parts = [
        _RejectOnErrorTarget(part, raised) if isinstance(part, Target) else _RejectOnError(part, raised)
        for part in list_factors(verifier)
    ]
    return parts[0] if len(parts) == 1 else Product(*parts)


class _RejectOnError(WrappingVerifier):
    def __init__(self, verifier: Verifier, raised: ErrorLog) -> None:
        super().__init__(verifier)
        self._raised = raised

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        zero = torch.zeros(1, dtype=torch.float64)
        values = _call_tolerantly(self._verifier.values, decoding, rows, zero, self._raised)
        assert values is not None
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        zeros = torch.zeros(1, decoding.vocab_size, dtype=torch.bool)
        return _call_tolerantly(self._verifier.children, decoding, rows, zeros, self._raised)


class _RejectOnErrorTarget(Target):
    def __init__(self, target: Target, raised: ErrorLog) -> None:
        self._target, self._raised = target, raised
        self.scope, self.most, self.layers, self.notes = (
            target.scope,
            target.most,
            target.layers,
            target.notes,
        )

    def log_values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        zero = torch.full((1,), -math.inf, dtype=torch.float64)
        log_values = _call_tolerantly(self._target.log_values, decoding, rows, zero, self._raised)
        assert log_values is not None
        return log_values

    def log_children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        zeros = torch.full((1, decoding.vocab_size), -math.inf, dtype=torch.float64)
        return _call_tolerantly(self._target.log_children, decoding, rows, zeros, self._raised)


def _call_tolerantly(
    call: Call, decoding: Decoding, rows: Tensor, nothing: Tensor, raised: ErrorLog
) -> Tensor | None:
    """Return the result of `call`, with the value `nothing` (1, ...) in rows for which it raises an exception."""
    try:
        return call(decoding, rows)
    except (torch.OutOfMemoryError, MemoryError):
        raise
    except Exception as error:
        if len(rows) > 1:
            results = [_call_tolerantly(call, decoding, row, nothing, raised) for row in rows.split(1)]
            available = [result for result in results if result is not None]
            # If `children` is unavailable for one row, the caller evaluates the children of all rows one by one.
            return torch.cat(available) if len(available) == len(rows) else None
        row = int(rows[0])
        message = (
            str(error)
            if isinstance(error, InputError)
            else f"{describe_error(error)}{format_error_location(error)}"
        )
        sequence = decoding.tokens[row, : int(decoding.lengths[row])]
        raised.note(sequence, int(decoding.start[row]), message)
        return nothing
