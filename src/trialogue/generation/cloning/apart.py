"""Clones that the workers of an executor make at the same time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch

from trialogue.data.clones import Clones
from trialogue.executors import Executor
from trialogue.executors.folders import SharedFolder
from trialogue.generation.cloning.maker import Made, Maker
from trialogue.storage import atomic_write

Files = Mapping[str, bytes]
"""By their paths in a folder."""


def made_apart(
    maker: Maker,
    depths: Sequence[int],
    work: Path,
    executor: Executor,
    clones: Clones,
    report: Callable[[str], object],
) -> Iterator[Made]:
    """A clone for each depth, each yielded when it is among `clones`, and what it is made from in the folder `work`."""
    accelerated = maker.device is None or maker.device.startswith("cuda")
    with SharedFolder(work).open() as folder:
        # A worker that does not see the folder goes on with what is in it all the same.
        kept = {} if executor.same_disk else _files(work)
        with executor.crew(
            partial(_making, maker, folder, kept), len(depths), accelerated=accelerated
        ) as crew:
            for _, (made, files) in crew.done([[depth] for depth in depths]):
                for path, content in files.items():
                    atomic_write(work / path, content)
                clones.add(made.clone)
                report(f"{made.clone.name}: made")
                yield made


def _making(maker: Maker, folder: SharedFolder, kept: Files) -> Callable[[int], tuple[Made, Files]]:
    """In a worker: what makes the clone of a depth, with the files that the process that hires cannot see."""
    with folder.beginning() as work:
        if work != folder.path:
            for path, content in kept.items():
                atomic_write(work / path, content)
    torch.set_num_threads(maker.threads)

    def make(depth: int) -> tuple[Made, Files]:
        if work == folder.path:
            return maker.made(depth, work), {}
        before = _files(work)
        made = maker.made(depth, work)
        # What others have made since is newer than what is kept here of theirs.
        return made, {path: content for path, content in _files(work).items() if before.get(path) != content}

    return make


def _files(work: Path) -> Files:
    files = (path for part in ("networks", "chains") for path in (work / part).rglob("*") if path.is_file())
    return {str(path.relative_to(work)): path.read_bytes() for path in files}
