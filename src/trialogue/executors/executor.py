"""What an executor is: workers that each keep what is costly to begin with, and do items of lanes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

Item: TypeAlias = Any
"""What names a piece of work: plain values that can be compared, hashed and pickled, and never None."""
Start: TypeAlias = Callable[[], Callable[[Item], Any]]
"""Called once in each worker: it loads what the worker keeps, a model perhaps, and returns what does an item."""


class Crew(ABC):
    """The workers of an executor while they are hired."""

    @abstractmethod
    def done(self, lanes: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, Any]]:
        """Do all items; yield each once, with what came of it, in the order in which they become known.

        Items of a lane are done one after the other, by one worker as long as that lives. An error of an item ends the
        work and is raised as it was; what was yielded before is not lost.
        """


class Executor(ABC):
    """Where work is done. It is named on the command line, and made of the address behind its name and of `workers`.

    `workers` bounds how many work at the same time; None leaves that to the executor.
    """

    threads = 1
    """Threads of torch that each worker has, and processors that it takes"""
    same_disk = False
    """Whether workers are sure to see the files of the process that hires them."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self.address, self.workers = address, workers

    def alone(self, lanes: int) -> bool:
        """Whether so many lanes are best done by the process that asks, without any worker: never, by default."""
        del lanes
        return False

    @abstractmethod
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> AbstractContextManager[Crew]:
        """Hire workers for up to so many lanes at the same time; each calls `start` once, before its first item.

        `start` and the items are pickled. Where the work is `accelerated`, the executor gives GPUs to the workers, if
        it has any to give.
        """
