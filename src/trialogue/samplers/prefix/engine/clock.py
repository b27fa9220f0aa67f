"""Wall time of a run, divided among the samples in progress."""

import time


class Clock:
    """Clock that divides every second of wall time equally among the samples in progress.

    A sample that is admitted when `seconds` is a, and finished when it is b, has taken b - a seconds.

    Attributes:
        seconds: Accumulated time in seconds of a sample that has been in progress since the start.
    """

    def __init__(self) -> None:
        self._began = self._since = time.perf_counter()
        self.seconds = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of wall time since the start."""
        return time.perf_counter() - self._began

    def rest(self) -> None:
        """Exclude the time since the last call of `tick` or `rest`, such as time between two steps."""
        self._since = time.perf_counter()

    def tick(self, samples: int) -> None:
        """Divide the time since the last call of `tick` or `rest` among samples.

        Args:
            samples: Number of samples in progress.
        """
        now = time.perf_counter()
        self.seconds += (now - self._since) / samples
        self._since = now
