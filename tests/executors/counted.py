"""Work whose beginnings can be seen from outside, and which waits until it may end."""

import os
import time
from collections.abc import Callable
from pathlib import Path

Item = tuple[str, int]


def where() -> str:
    """The node that this process is on, and its own number."""
    import ray

    return f"{ray.get_runtime_context().get_node_id()}.{os.getpid()}"


def gated(folder: Path, gate: str, kept: str) -> Callable[[Item], tuple[str, int]]:
    """What squares the number of an item, once the file `gate` is in `folder`, where it leaves word that it began."""
    own = where()
    (folder / f"{kept}.{own}").touch()

    def square(item: Item) -> tuple[str, int]:
        (folder / f"{item[0]}-{item[1]}.{own}").touch()
        while not (folder / gate).exists():
            time.sleep(0.02)
        return own, item[1] ** 2

    return square
