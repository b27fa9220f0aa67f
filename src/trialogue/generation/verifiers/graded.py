"""Values of finished samples: what a graded verifier said, and whether that passes its threshold."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.samplers import Samples
from trialogue.verifiers.wrapping import WrappingVerifier

_REMEMBERED = 1 << 14
"""Complete sequences whose values are remembered, or four times as many as were asked about at once"""


class Graded(WrappingVerifier):
    """`verifier`, whose values are degrees, as a sampler sees it; the latest values of complete sequences are
    remembered.

    `threshold` is where acceptance begins, if not above zero. A sampler that is given the values themselves asks once
    per sequence, so that to judge a finished sample anew would cost a pass of the model. `each` is told, at most once,
    that a sampler judges every continuation of a prefix by itself.
    """

    def __init__(self, verifier: Verifier, threshold: float | None = None, *, written: bool = False) -> None:
        super().__init__(verifier)
        self.threshold, self.written = threshold, written
        self.each: Callable[[], None] | None = None
        self._values, self._most = OrderedDict[bytes, float](), _REMEMBERED

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) of the sequences in `rows` (n,)."""
        values = self._verifier.values(decoding, rows)
        for place in decoding.complete[rows].nonzero()[:, 0].tolist():
            row = int(rows[place])
            tokens = decoding.tokens[row, : int(decoding.lengths[row])]
            name = _name(tokens, int(decoding.start[row]))
            self._values[name] = float(values[place])
            self._values.move_to_end(name)
        self._most = max(self._most, 4 * len(rows))
        while len(self._values) > self._most:
            self._values.popitem(last=False)
        return values

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor | None:
        """Values (n, vocab) of all one-token continuations, or None where only `values` can tell."""
        values = self._verifier.children(decoding, rows)
        if values is None and self.each is not None:
            told, self.each = self.each, None
            told()
        return values

    def final(self, samples: Samples) -> list[float | None]:
        """The values of finished samples, None of those that were never judged as a whole."""
        lengths, starts = samples.lengths.tolist(), samples.prompt_lengths.tolist()
        rows = zip(samples.tokens, lengths, starts, strict=True)
        return [self._values.get(_name(tokens[:length], start)) for tokens, length, start in rows]


def _name(tokens: Tensor, start: int) -> bytes:
    """A sequence and where its completion begins, in few bytes: a run may judge millions."""
    return hashlib.blake2b(
        tokens.cpu().numpy().tobytes(), digest_size=16, salt=start.to_bytes(8, "little")
    ).digest()
