"""Verifiers that may raise: what they raise rejects the one sequence that they were asked about."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError, reason
from trialogue.oracles import Decoding, Verifier
from trialogue.verifiers.combination import Product, factors
from trialogue.verifiers.users_code import raised_at
from trialogue.verifiers.wrapping import WrappingVerifier

Call = Callable[[Decoding, Tensor], Tensor | None]
_MOST = 1 << 16


class _Below(NamedTuple):
    """How many continuations of a sequence verifiers raised about, and what about the first."""

    number: int
    first: str


class Raised:
    """What the verifiers of one rule raised, by the sequence that they were asked about: of the last `most` of those.

    Of as many sequences it knows what was raised about their continuations.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._about, self._below = dict[bytes, str](), dict[bytes, _Below]()

    def note(self, tokens: Tensor, start: int, told: str) -> None:
        """Note what was `told` about a sequence `tokens` (length,), the first `start` of which are its prompt."""
        name = _name(tokens, start)
        if name in self._about:
            return
        self._about[name] = told
        if len(tokens) > start:
            # Where every continuation is rejected so, it is where they begin that stands in the end.
            parent = _name(tokens[:-1], start)
            below = self._below.pop(parent, _Below(0, told))
            self._below[parent] = below._replace(number=below.number + 1)
        for table in (self._about, self._below):
            while len(table) > self._most:
                del table[next(iter(table))]

    def of(self, tokens: Tensor, start: int, failed: bool) -> str | None:
        """What was told about a sequence `tokens` (length,), the first `start` of which are its prompt.

        If nothing was and it `failed`, having no way on, what was told about its continuations.
        """
        name = _name(tokens, start)
        if name in self._about or not failed or name not in self._below:
            return self._about.get(name)
        number, first = self._below[name]
        return (
            f"1 continuation raised: {first}"
            if number == 1
            else f"{number} continuations raised, the first: {first}"
        )


def _name(tokens: Tensor, start: int) -> bytes:
    return start.to_bytes(8, "little") + tokens.cpu().numpy().tobytes()


def tolerant(verifier: Verifier, raised: Raised) -> Verifier:
    """`verifier`, which gives zero where it, or one that it is a product of, raises; `raised` is told what.

    Running out of memory and interruptions are raised on.
    """
    parts = [_Tolerant(part, raised) for part in factors(verifier)]
    return parts[0] if len(parts) == 1 else Product(*parts)


class _Tolerant(WrappingVerifier):
    def __init__(self, verifier: Verifier, raised: Raised) -> None:
        super().__init__(verifier)
        self._raised = raised

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        values = self._tolerated(
            self._verifier.values, decoding, rows, lambda: torch.zeros(1, dtype=torch.float64)
        )
        assert values is not None
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        return self._tolerated(
            self._verifier.children,
            decoding,
            rows,
            lambda: torch.zeros(1, decoding.vocab_size, dtype=torch.bool),
        )

    def _tolerated(
        self, call: Call, decoding: Decoding, rows: Tensor, nothing: Callable[[], Tensor]
    ) -> Tensor | None:
        """Return the result of `call`, with `nothing` for the rows about which it raises."""
        try:
            return call(decoding, rows)
        except (torch.OutOfMemoryError, MemoryError):
            raise
        except Exception as error:
            if len(rows) > 1:
                answers = [self._tolerated(call, decoding, row, nothing) for row in rows.split(1)]
                known = [answer for answer in answers if answer is not None]
                # If one row does not know its children, the children of all rows are judged one by one.
                return torch.cat(known) if len(known) == len(rows) else None
            row = int(rows[0])
            told = str(error) if isinstance(error, InputError) else f"{reason(error)}{raised_at(error)}"
            sequence = decoding.tokens[row, : int(decoding.lengths[row])]
            self._raised.note(sequence, int(decoding.start[row]), told)
            return nothing()
