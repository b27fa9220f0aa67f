"""Wall time of a run, divided among the samples in progress."""

import time


class Clock:
    """Clock that divides every second equally among the samples in progress.

    A sample admitted at the reading a and finished at the reading b is charged b - a seconds.

    Attributes:
        seconds: Seconds charged to a sample that has been in progress since the start.
    """

    def __init__(self) -> None:
        self._began = self._since = time.perf_counter()
        self.seconds = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of wall time since the start."""
        return time.perf_counter() - self._began

    def rest(self) -> None:
        """Exclude the time since the last tick from the charges."""
        self._since = time.perf_counter()

    def tick(self, samples: int) -> None:
        """Divide the time since the last tick among `samples` samples."""
        now = time.perf_counter()
        self.seconds += (now - self._since) / samples
        self._since = now
