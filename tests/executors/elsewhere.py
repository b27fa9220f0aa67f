"""An executor that does all work here, and handles it as if it went to another machine and came back."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

from trialogue.executors import Crew, Executor, Start


class Elsewhere(Executor):
    """Hires as many workers as it is told to, none of which shares anything with another."""

    @contextmanager
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Crew]:
        del accelerated
        yield Unshared([pickle.loads(pickle.dumps(start))() for _ in range(min(self.workers or 1, lanes))])


class Unshared(Crew):
    """Workers that take lanes in turn, the last first."""

    def __init__(self, workers: Sequence[Callable[[Any], Any]]) -> None:
        self.workers = workers

    def done(self, lanes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        for do, lane in zip(cycle(self.workers), reversed(lanes), strict=False):
            yield from (pickle.loads(pickle.dumps((item, do(item)))) for item in lane)
