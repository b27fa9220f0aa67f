"""Base class of executors, which run tasks in parallel."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Item: TypeAlias = Any
"""Description of a unit of work: a hashable, picklable value other than None."""
Start: TypeAlias = Callable[[], Callable[[Item], Any]]
"""Function called once in each worker. It loads resources (for example a model) and returns the function that
processes an item."""


class Workers(ABC):
    """Running workers of an executor, which process items."""

    @abstractmethod
    def done(self, lanes: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, Any]]:
        """Process items with the workers, and yield each result when it is available.

        A lane is a sequence of items that are processed one after the other, by the same worker unless it dies.
        Different lanes are processed in parallel. An exception raised by an item ends the iteration.

        Args:
            lanes: Lanes of items. Items are hashable and picklable.

        Yields:
            Pairs of an item and its result.
        """


class Executor(ABC):
    """Base class of executors, which process items in parallel with several workers.

    A worker is a process on this machine or on a cluster. A lane is a sequence of items that one worker
    processes in order.

    Args:
        address: Address of a cluster that the user gave after the name of the executor, or None.
        workers: Maximum number of workers. None for the default of the executor.
    """

    threads = 1
    """Number of PyTorch threads and of CPUs per worker."""
    same_disk = False
    """Whether workers can access the files of the calling process."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address, self.workers = address, workers

    def alone(self, lanes: int) -> bool:
        """Return whether the calling process should do all the work itself, without workers.

        The default implementation returns False.

        Args:
            lanes: Number of lanes, which are sequences of items that can be processed in parallel.
        """
        del lanes
        return False

    @abstractmethod
    def start_workers(
        self, start: Start, lanes: int, *, accelerated: bool = False
    ) -> AbstractContextManager[Workers]:
        """Start workers, as a context manager that stops them on exit.

        Args:
            start: Function called once in each worker. It returns the function that processes an item. It
                must be picklable, like the items.
            lanes: Maximum number of lanes (sequences of items) that are processed at the same time.
            accelerated: Whether workers use GPUs, if the executor has any.

        Returns:
            Context manager whose value is the running workers.
        """
