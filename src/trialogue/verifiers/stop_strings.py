"""Stop strings as verifiers of text see them: what counts is the text before the first one.

A completion that contains a stop string is complete, and its text ends before it, whatever the last token holds behind.
A prefix may end in the beginning of a stop string, of which nobody knows yet whether it is text.
"""

from collections.abc import Sequence

from trialogue.errors import InputError


class StopStrings:
    """The texts `stop`, one or several, none of them empty."""

    def __init__(self, stop: str | Sequence[str]) -> None:
        texts = [stop] if isinstance(stop, str) else list(stop)
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise InputError("stop", stop, "give strings that are not empty")
        self._strings = [text.encode() for text in texts]
        self._beginnings = tuple({one[:size] for one in self._strings for size in range(1, len(one))})
        self._reach = max(map(len, self._strings)) - 1

    def find(self, data: bytes) -> int | None:
        """Where the first stop string in `data` begins."""
        places = [place for place in map(data.find, self._strings) if place >= 0]
        return min(places, default=None)

    def held(self, data: bytes) -> bytes:
        """The longest end of `data` that is the beginning of a stop string, and shorter than it."""
        if not data.endswith(self._beginnings):
            return b""
        return max((one for one in self._beginnings if data.endswith(one)), key=len)

    def pending(self, data: bytes) -> list[int]:
        """Where the first stop string may turn out to begin that `data`, which contains none, ends within."""
        if not data.endswith(self._beginnings):
            return []
        tail, places = data[max(0, len(data) - self._reach) :], set()
        for string in self._strings:
            for size in range(1, min(len(string), len(tail) + 1)):
                place = len(tail) - size
                if tail.endswith(string[:size]) and self.find(tail[:place] + string) == place:
                    places.add(len(data) - size)
        return sorted(places)

    def before(self, text: str, final: bool) -> str:
        """`text` up to its first stop string; unless it is `final`, also without an end that may belong to one."""
        data = text.encode()
        place = self.find(data)
        if place is None:
            place = len(data) if final else len(data) - len(self.held(data))
        return data[:place].decode()
