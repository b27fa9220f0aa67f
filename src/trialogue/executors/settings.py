"""Where a command has its work done, as options of the command."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from trialogue.executors.executor import Executor
from trialogue.executors.registered import executor_of
from trialogue.validation import Count, validated


@validated
@dataclass(frozen=True)
class Execution:
    """Where the work is done."""

    executor: Annotated[str, arg(metavar="WHERE")] = "local"
    """local; ray: a Ray cluster for this run; ray://HOST:PORT or ray:ADDRESS: one that is running. What files name must
    be on each of its machines."""
    workers: Annotated[Count | None, arg(metavar="N")] = None
    """Processes that work at the same time (1; on Ray as many as there are GPUs, or else processors)."""

    def opened(self, threads: int = 1) -> Executor:
        """The executor of workers with so many threads; raises `InputError` for one that is unknown or not there."""
        return executor_of(self.executor, self.workers, threads)
