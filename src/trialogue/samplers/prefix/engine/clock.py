"""Division of wall time among samples that are generated together."""

import time


class Clock:
    """Measures the wall time of each sample, dividing time equally among the samples in progress.

    A sample is given the increase of `seconds` between its start and its end.

    Attributes:
        seconds: Time in seconds of a sample that has been in progress since the start of the run.
    """

    def __init__(self) -> None:
        self._began = self._since = time.perf_counter()
        self.seconds = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of wall time since the start."""
        return time.perf_counter() - self._began

    def exclude_idle_time(self) -> None:
        """Do not count the time since the last call, for example if no sample is in progress."""
        self._since = time.perf_counter()

    def tick(self, samples: int) -> None:
        """Divide the time since the last call equally among the samples in progress.

        Args:
            samples: Number of samples in progress.
        """
        now = time.perf_counter()
        self.seconds += (now - self._since) / samples
        self._since = now
