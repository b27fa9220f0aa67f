"""Processes of this machine."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from trialogue.errors import InputError
from trialogue.executors.executor import Crew, Executor, Item, Start
from trialogue.executors.loky_memory import allow_growth
from trialogue.extras import from_extra


class Local(Executor):
    """This process, or with more than one of `workers` as many others: a lane's items are known when it is done."""

    same_disk = True

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if address is not None:
            raise InputError(
                "executor",
                address if "://" in address else f"local:{address}",
                "local has no address: leave it out",
            )
        super().__init__(address, workers)

    def alone(self, lanes: int) -> bool:
        """With one worker, or for one lane."""
        return min(self.workers or 1, lanes) < 2

    @contextmanager
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Crew]:
        """Hire processes; a GPU is shared by all."""
        del accelerated
        hired = min(self.workers or 1, lanes)
        joblib = from_extra("joblib", "workers")
        with joblib.Parallel(n_jobs=hired, batch_size=1, return_as="generator_unordered") as parallel:
            yield _Processes(parallel, start, self.threads)


class _Processes(Crew):
    def __init__(self, parallel: Any, start: Start, threads: int) -> None:
        self._parallel, self._start, self._threads, self._token = parallel, start, threads, uuid4().hex
        self._folder = Path.cwd()

    def done(self, lanes: Sequence[Sequence[Item]]) -> Iterator[tuple[Item, Any]]:
        # Tasks of joblib are functions with their arguments.
        given = (self._token, self._folder, self._start, self._threads)
        for lane in self._parallel((_lane, (*given, items), {}) for items in lanes):
            yield from lane


_kept: dict[str, Callable[[Item], Any]] = {}
"""What this process keeps of the crew that it belongs to, by the crew's token."""


def _lane(
    token: str, folder: Path, start: Start, threads: int, lane: Sequence[Item]
) -> list[tuple[Item, Any]]:
    if token not in _kept:
        import torch

        allow_growth()
        torch.set_num_threads(threads)
        # A process outlives its crew, and works for one at a time: paths are those of the process that hires it now.
        os.chdir(folder)
        _kept.clear()
        _kept[token] = start()
    return [(item, _kept[token](item)) for item in lane]
