"""Function for workers that records each call as a file and returns only after a file is created."""

import os
import time
from collections.abc import Callable
from pathlib import Path

Item = tuple[str, int]


def node_and_process() -> str:
    """Return the id of the Ray node of this process and the process id, joined by a dot."""
    import ray

    return f"{ray.get_runtime_context().get_node_id()}.{os.getpid()}"


def gated(folder: Path, gate: str, prefix: str) -> Callable[[Item], tuple[str, int]]:
    """Return a function that squares the number of an item as soon as the file `gate` exists in `folder`.

    Creating the function and each of its calls create one empty file in `folder`. The name of the file ends with
    the node and the process.

    Args:
        folder: Folder of all files.
        gate: Name of the file that allows calls to return.
        prefix: Prefix of the name of the file that records the creation of the function.
    """
    place = node_and_process()
    (folder / f"{prefix}.{place}").touch()

    def square(item: Item) -> tuple[str, int]:
        (folder / f"{item[0]}-{item[1]}.{place}").touch()
        while not (folder / gate).exists():
            time.sleep(0.02)
        return place, item[1] ** 2

    return square
