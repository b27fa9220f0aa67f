"""Interface of executors."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Item: TypeAlias = Any
"""Description of a unit of work: a hashable, picklable value other than None."""
Start: TypeAlias = Callable[[], Callable[[Item], Any]]
"""Function called once in each worker. It loads resources (for example a model) and returns the function that
processes an item."""


class Crew(ABC):
    """Workers of an executor while they are in use."""

    @abstractmethod
    def done(self, lanes: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, Any]]:
        """Process all items and yield each with its result, in order of completion.

        The items of a lane are processed in order, by the same worker unless it dies. An exception raised by
        an item ends the iteration.

        Args:
            lanes: Sequences of items. Different lanes can run in parallel.

        Yields:
            Pairs of an item and its result.
        """


class Executor(ABC):
    """Base class of executors.

    Args:
        address: Address given after the name of the executor on the command line, or None.
        workers: Maximum number of workers, or None for the default of the executor.
    """

    threads = 1
    """Number of PyTorch threads and of CPUs per worker."""
    same_disk = False
    """Whether workers can access the files of the calling process."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address, self.workers = address, workers

    def alone(self, lanes: int) -> bool:
        """Return whether the calling process should process this many lanes without workers. False by default."""
        del lanes
        return False

    @abstractmethod
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> AbstractContextManager[Crew]:
        """Start workers in a context and return them.

        Args:
            start: Function called once in each worker before its first item. It must be picklable, like the
                items.
            lanes: Maximum number of lanes that are processed at the same time.
            accelerated: Whether workers should use GPUs, if the executor has any.
        """
