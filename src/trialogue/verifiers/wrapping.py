"""Base class of verifiers that transform the values of another verifier."""

from collections.abc import Sequence
from copy import copy
from typing import Self

from torch import Tensor

from trialogue.oracles import Decoding, Verifier


class WrappingVerifier(Verifier):
    """Base class of verifiers that transform the values of another verifier.

    A subclass overrides `_converted`, which receives and returns a tensor of values.

    Args:
        verifier: Verifier whose values are transformed. Its attributes (`scope`, `most`, `layers`, ...) are copied.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self.scope, self.most, self.layers = verifier.scope, verifier.most, verifier.layers
        self.notes, self.parser, self.has_mask = verifier.notes, verifier.parser, verifier.has_mask

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy that ignores the text from the first stop string onwards.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped._verifier = self._verifier.up_to(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the transformed values of some sequences of a batch.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,), one for each index in `rows`.
        """
        return self._converted(self._verifier.values(decoding, rows))

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return the transformed values of all sequences that extend a row by one token.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Values (n, vocab). Entry (i, t) belongs to row `rows[i]` followed by token t. None if the wrapped verifier
            returns None.
        """
        values = self._verifier.children(decoding, rows)
        return None if values is None else self._converted(values)

    def residuals(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Return integer keys that identify sequences with the same possible futures.

        The keys are those of the wrapped verifier. If two sequences have equal keys, they have equal values after the
        same tokens are appended to both.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch.

        Returns:
            Keys (n, k) int64 of k integers per sequence. None if the wrapped verifier does not define keys.
        """
        return self._verifier.residuals(decoding, rows)

    def _converted(self, values: Tensor) -> Tensor:
        """Transform the values of the wrapped verifier."""
        return values
