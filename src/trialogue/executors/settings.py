"""Options of commands that distribute work over processes."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from trialogue.executors.executor import Executor
from trialogue.executors.registered import make_executor
from trialogue.validation import Count, validated


@validated
@dataclass(frozen=True)
class Execution:
    """Options on worker processes."""

    executor: Annotated[str, arg(metavar="WHERE")] = "local"
    """Start workers on this machine (local), on a new Ray cluster (ray), or on a running one (ray://HOST:PORT or
    ray:ADDRESS). All machines must see the same files."""
    workers: Annotated[Count | None, arg(metavar="N")] = None
    """Run this many worker processes (default: 1; on Ray one per GPU, or per CPU without GPUs)."""

    @property
    def is_single_process(self) -> bool:
        """Whether the calling process does all the work."""
        return self.executor == "local" and (self.workers or 1) == 1

    def opened(self, threads: int = 1) -> Executor:
        """Create the executor that the options specify.

        Args:
            threads: Number of PyTorch threads per worker.

        Raises:
            InputError: If the executor is unknown or unavailable.
        """
        return make_executor(self.executor, self.workers, threads)
