"""Executor that uses processes of this machine."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from trialogue.errors import InputError
from trialogue.executors.executor import Executor, Item, Start, Workers
from trialogue.executors.loky_memory import allow_growth
from trialogue.extras import from_extra


class Local(Executor):
    """Executor that uses processes of this machine.

    With one worker, the calling process does the work itself. With several workers, the results of a lane (a
    sequence of items) are returned together when all of its items are finished.

    Args:
        address: Must be None.
        workers: Number of processes, by default 1.

    Raises:
        InputError: If an address is given.
    """

    same_disk = True

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if address is not None:
            raise InputError(
                "executor",
                address if "://" in address else f"local:{address}",
                "leave out the address: local has none",
            )
        super().__init__(address, workers)

    def alone(self, lanes: int) -> bool:
        """Return True if there is only one worker or only one lane (a sequence of items to process in order).

        Args:
            lanes: Number of lanes.
        """
        return min(self.workers or 1, lanes) < 2

    @contextmanager
    def start_workers(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Workers]:
        """Start processes, as a context manager that stops them on exit.

        The processes share the GPU if there is one.

        Args:
            start: Function called once in each process. It returns the function that processes an item.
            lanes: Maximum number of lanes (sequences of items) that are processed at the same time.
            accelerated: Ignored.

        Yields:
            The running processes.
        """
        del accelerated
        count = min(self.workers or 1, lanes)
        joblib = from_extra("joblib", "workers")
        with joblib.Parallel(n_jobs=count, batch_size=1, return_as="generator_unordered") as parallel:
            yield _Processes(parallel, start, self.threads)


class _Processes(Workers):
    def __init__(self, parallel: Any, start: Start, threads: int) -> None:
        self._parallel, self._start, self._threads, self._token = parallel, start, threads, uuid4().hex
        self._folder = Path.cwd()

    def done(self, lanes: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, Any]]:
        # joblib represents a task by a function and its arguments.
        settings = (self._token, self._folder, self._start, self._threads)
        for lane in self._parallel((_process_lane, (*settings, items), {}) for items in lanes):
            yield from lane


_process_item: dict[str, Callable[[Item], Any]] = {}
"""Function that processes items, by the token of the group of workers to which this process belongs."""


def _process_lane(
    token: str, folder: Path, start: Start, threads: int, lane: Sequence[Item]
) -> list[tuple[Item, Any]]:
    if token not in _process_item:
        import torch

        allow_growth()
        torch.set_num_threads(threads)
        # joblib reuses processes for later crews, so the working folder is set again.
        os.chdir(folder)
        _process_item.clear()
        _process_item[token] = start()
    return [(item, _process_item[token](item)) for item in lane]
