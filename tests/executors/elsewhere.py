"""An executor that runs in this process but pickles items and results, as if they were sent to other machines."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

from trialogue.executors import Executor, Start, Workers


class Elsewhere(Executor):
    """Executor of `workers` independent workers in this process."""

    @contextmanager
    def start_workers(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Workers]:
        del accelerated
        yield InProcessCrew(
            [pickle.loads(pickle.dumps(start))() for _ in range(min(self.workers or 1, lanes))]
        )


class InProcessCrew(Workers):
    """Workers that process the lanes in reverse order, in turn."""

    def __init__(self, workers: Sequence[Callable[[Any], Any]]) -> None:
        self.workers = workers

    def done(self, lanes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        for work, lane in zip(cycle(self.workers), reversed(lanes), strict=False):
            yield from (pickle.loads(pickle.dumps((item, work(item)))) for item in lane)
