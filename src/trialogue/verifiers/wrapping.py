"""Verifiers that change the values of another verifier."""

from collections.abc import Sequence
from copy import copy
from typing import Self

from torch import Tensor

from trialogue.oracles import Decoding, Verifier


class WrappingVerifier(Verifier):
    """A verifier with the attributes and the values of another one; derived classes change the values."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.scope, self.most, self.layers = verifier.scope, verifier.most, verifier.layers
        self.notes, self.parser, self.has_mask = verifier.notes, verifier.parser, verifier.has_mask

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return the same for a verifier that judges the text before the first of the strings `stop`."""
        stopped = copy(self)
        stopped._verifier = self._verifier.up_to(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return values (n,) of the sequences in `rows` (n,)."""
        return self._converted(self._verifier.values(decoding, rows))

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return values (n, vocab) of all one-token continuations, or None if only `values` can tell."""
        values = self._verifier.children(decoding, rows)
        return None if values is None else self._converted(values)

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the residual languages of the other verifier."""
        return self._verifier.residuals(decoding, rows)

    def _converted(self, values: Tensor) -> Tensor:
        """Return the values of this verifier, given those of the other one."""
        return values
