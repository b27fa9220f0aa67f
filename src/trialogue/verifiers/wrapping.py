"""Base class of verifiers that transform the values of another verifier."""

from collections.abc import Sequence
from copy import copy
from typing import Self

from torch import Tensor

from trialogue.oracles import Decoding, Verifier


class WrappingVerifier(Verifier):
    """Base class that delegates to another verifier. Subclasses override `_converted` to transform the values.

    Args:
        verifier: Verifier to delegate to. Its attributes (`scope`, `most`, `layers`, ...) are copied.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.scope, self.most, self.layers = verifier.scope, verifier.most, verifier.layers
        self.notes, self.parser, self.has_mask = verifier.notes, verifier.parser, verifier.has_mask

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy that ignores the text from the first of the strings `stop` onwards."""
        stopped = copy(self)
        stopped._verifier = self._verifier.up_to(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the transformed values (n,) of the sequences in `rows` (n,)."""
        return self._converted(self._verifier.values(decoding, rows))

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the transformed values (n, vocab) of all one-token continuations, or None if unavailable."""
        values = self._verifier.children(decoding, rows)
        return None if values is None else self._converted(values)

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the equivalence-class keys of the wrapped verifier."""
        return self._verifier.residuals(decoding, rows)

    def _converted(self, values: Tensor) -> Tensor:
        """Transform the values of the wrapped verifier."""
        return values
