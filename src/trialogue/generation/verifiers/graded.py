"""Caching of the values of graded verifiers for finished samples."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.samplers import Samples
from trialogue.verifiers.wrapping import WrappingVerifier

_REMEMBERED = 1 << 14
"""Minimum capacity of the cache. The capacity is at least four times the largest batch."""


class CachedGradedVerifier(WrappingVerifier):
    """Wrapper of a graded verifier that caches the values of complete sequences.

    A graded verifier returns non-negative values that can differ from 0 and 1. The cache avoids another forward pass
    when a finished sample is evaluated.

    Attributes:
        threshold: Minimum value of an accepted sample. None accepts every positive value.
        written: Whether the user specified the threshold.
        on_slow_evaluation: Function called once, without arguments, when a sampler evaluates the continuations of a
            prefix one at a time. None for no function.
    """

    def __init__(self, verifier: Verifier, threshold: float | None = None, *, written: bool = False) -> None:
        super().__init__(verifier)
        self.threshold, self.written = threshold, written
        self.on_slow_evaluation: Callable[[], None] | None = None
        self._values, self._capacity = OrderedDict[bytes, float](), _REMEMBERED

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Compute the values of sequences, and cache the values of complete sequences.

        Args:
            decoding: Sequences in progress.
            rows: Indices of the sequences to evaluate, shape (n,).

        Returns:
            Values, shape (n,).
        """
        values = self._verifier.values(decoding, rows)
        for place in decoding.complete[rows].nonzero()[:, 0].tolist():
            row = int(rows[place])
            tokens = decoding.tokens[row, : int(decoding.lengths[row])]
            key = _hash_sequence(tokens, int(decoding.start[row]))
            self._values[key] = float(values[place])
            self._values.move_to_end(key)
        self._capacity = max(self._capacity, 4 * len(rows))
        while len(self._values) > self._capacity:
            self._values.popitem(last=False)
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Compute the values of all continuations by one token.

        Args:
            decoding: Sequences in progress.
            rows: Indices of the sequences to continue, shape (n,).

        Returns:
            Values, shape (n, vocab). None if the verifier can only evaluate one sequence at a time.
        """
        values = self._verifier.children(decoding, rows)
        if values is None and self.on_slow_evaluation is not None:
            notify, self.on_slow_evaluation = self.on_slow_evaluation, None
            notify()
        return values

    def final(self, samples: Samples) -> list[float | None]:
        """Return the cached values of finished samples.

        Args:
            samples: Finished samples.

        Returns:
            One value per sample. None for a sample that was not evaluated when it was complete.
        """
        lengths, starts = samples.lengths.tolist(), samples.prompt_lengths.tolist()
        rows = zip(samples.tokens, lengths, starts, strict=True)
        return [self._values.get(_hash_sequence(tokens[:length], start)) for tokens, length, start in rows]


def _hash_sequence(tokens: Tensor, start: int) -> bytes:
    """Return a 16-byte hash of a sequence and the start of its completion."""
    return hashlib.blake2b(
        tokens.cpu().numpy().tobytes(), digest_size=16, salt=start.to_bytes(8, "little")
    ).digest()
