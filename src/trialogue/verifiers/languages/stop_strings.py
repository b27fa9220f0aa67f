"""Search for stop strings in the text of a completion.

A completion that contains a stop string is complete. Its text ends before the stop string, even if the last token
contains further characters. If a prefix ends with the beginning of a stop string, later tokens decide whether these
characters belong to the text.
"""

from collections.abc import Sequence

from trialogue.errors import InputError


class StopStrings:
    """Set of stop strings, which are texts at which a completion ends.

    The methods search encoded text for complete stop strings and for their beginnings.

    Args:
        stop: One or several non-empty strings.

    Raises:
        InputError: If `stop` is empty or contains an empty string or a value that is not a string.
    """

    def __init__(self, stop: str | Sequence[str]) -> None:
        texts = [stop] if isinstance(stop, str) else list(stop)
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise InputError("stop", stop, "pass one or more non-empty strings")
        self._strings = [text.encode() for text in texts]
        self._beginnings = tuple({one[:size] for one in self._strings for size in range(1, len(one))})
        self._reach = max(map(len, self._strings)) - 1

    def find(self, data: bytes) -> int | None:
        """Return the position of the first complete stop string.

        Args:
            data: Text encoded as UTF-8.

        Returns:
            Byte offset of the first stop string. None if `data` contains no stop string.
        """
        offsets = [offset for offset in map(data.find, self._strings) if offset >= 0]
        return min(offsets, default=None)

    def held(self, data: bytes) -> bytes:
        """Return the end of a text that may be the beginning of a stop string, and must not be shown yet.

        Args:
            data: Text encoded as UTF-8.

        Returns:
            Longest suffix of `data` that is equal to the beginning of a stop string, but not a complete one. Empty if
            there is no such suffix.
        """
        if not data.endswith(self._beginnings):
            return b""
        return max((one for one in self._beginnings if data.endswith(one)), key=len)

    def pending(self, data: bytes) -> list[int]:
        """Return the positions at which an incomplete stop string may begin.

        Args:
            data: Text encoded as UTF-8 that contains no complete stop string.

        Returns:
            Byte offsets in ascending order. The bytes from each offset to the end of `data` are the beginning of a stop
            string, which later text may complete.
        """
        if not data.endswith(self._beginnings):
            return []
        tail, offsets = data[max(0, len(data) - self._reach) :], set()
        for string in self._strings:
            for size in range(1, min(len(string), len(tail) + 1)):
                offset = len(tail) - size
                if tail.endswith(string[:size]) and self.find(tail[:offset] + string) == offset:
                    offsets.add(len(data) - size)
        return sorted(offsets)

    def before(self, text: str, final: bool) -> str:
        """Return the part of a text before its first stop string.

        Args:
            text: Text of a completion.
            final: Whether no further text follows. If False, a suffix that may be the beginning of a stop string is
                removed as well.
        """
        data = text.encode()
        end = self.find(data)
        if end is None:
            end = len(data) if final else len(data) - len(self.held(data))
        return data[:end].decode()
