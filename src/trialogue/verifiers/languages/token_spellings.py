"""Search for tokens by their bytes."""

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache

from trialogue.models.tokenization import Tokenization


class TokenSpellings:
    """Search for tokens by their bytes.

    Args:
        tokenization: Tokenization of the model.
    """

    def __init__(self, tokenization: Tokenization) -> None:
        table = tokenization.token_bytes
        self._sorted = sorted((spelling, token) for token, spelling in enumerate(table) if spelling)
        self._known = frozenset(table)
        self._longest = max((len(spelling) for spelling, _ in self._sorted), default=0)

    def continuations_of(self, text: bytes) -> list[int]:
        """Return the tokens whose bytes are `text`, or begin with it."""
        return [token for _, token in self._from(text, len(text))]

    def beginnings_of(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield length and id of the tokens whose bytes are `text`, or a beginning of it."""
        for length in range(1, min(len(text), self._longest) + 1):
            for spelling, token in self._from(text[:length], length):
                if len(spelling) > length:
                    break
                yield length, token

    def _from(self, text: bytes, length: int) -> Iterator[tuple[bytes, int]]:
        """Yield the tokens whose bytes begin with `text`, those with the fewest bytes first."""
        place = bisect_left(self._sorted, (text, -1))
        while place < len(self._sorted) and self._sorted[place][0][:length] == text:
            yield self._sorted[place]
            place += 1

    def count(self, text: bytes) -> int | None:
        """Return the smallest number of tokens whose bytes are `text`, or None if there are no such tokens."""
        counts: list[int | None] = [0]
        for stop in range(1, len(text) + 1):
            before = [
                count
                for start in range(max(0, stop - self._longest), stop)
                if (count := counts[start]) is not None and text[start:stop] in self._known
            ]
            counts.append(1 + min(before) if before else None)
        return counts[-1]


token_spellings = lru_cache(maxsize=4)(TokenSpellings)
