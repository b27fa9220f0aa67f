"""The wall time of a run, shared among the samples under way."""

import time


class Clock:
    """Every second is shared equally among the samples under way.

    `seconds` is what a sample that is under way since the beginning has been charged: one that comes when it shows a
    and goes when it shows b is charged b - a.
    """

    def __init__(self) -> None:
        self._began = self._since = time.perf_counter()
        self.seconds = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of wall time since the beginning."""
        return time.perf_counter() - self._began

    def rest(self) -> None:
        """Charge nobody for what has passed since the last tick."""
        self._since = time.perf_counter()

    def tick(self, samples: int) -> None:
        """Charge what has passed since the last tick to so many samples."""
        now = time.perf_counter()
        self.seconds += (now - self._since) / samples
        self._since = now
