"""Create a folder of clones of a text."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import parse_device
from trialogue.data.clones import TEXT, Clone, Clones
from trialogue.data.corpus.corpus import Corpus
from trialogue.errors import InputError
from trialogue.executors import Executor
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local
from trialogue.generation.cloning.maker import CloneMaker, MadeClone, clone_name
from trialogue.generation.cloning.settings import CloneSettings
from trialogue.randomness import generator
from trialogue.storage import atomic_write, hold_lock, make_folder, read_json_object

_WORK, _SETTINGS = "making", "settings.json"
_MAX_SCORED_ROWS = 1024
"""Maximum number of held-out rows on which the loss of a network is evaluated."""
Files = Mapping[str, bytes]
"""Contents of files by relative path."""


def make_clones(
    settings: CloneSettings,
    *,
    device: torch.device | str | None = None,
    executor: Executor | None = None,
    threads: int = 1,
    progress: bool = False,
    report: Callable[[str], object] = lambda _: None,
) -> Iterator[MadeClone]:
    """Create clones of a text and store them in the folder `settings.out`.

    A clone is a copy of the text in which only interactions of tokens up to some order remain. An interrupted
    run with the same settings continues from the stored networks and chains, and so does a run with more
    sweeps or other numbers of layers.

    Args:
        settings: Settings of the clones.
        device: Torch device. None for the GPU if there is one and the CPU otherwise.
        executor: Executor whose workers create clones in parallel. Clones are then yielded as they finish.
        threads: Number of PyTorch threads per worker.
        progress: Whether to show a progress bar.
        report: Function called with progress messages.

    Yields:
        The original text and then each clone, after it is stored.

    Raises:
        InputError: If the text cannot be read or has too few held-out sequences, a training fails, or the
            folder contains clones with other settings.
    """
    executor = executor or Local()
    if device is not None and executor.same_disk:
        parse_device(device)
    text, depths = settings.text, settings.network.layers
    corpus = Corpus.open(
        str(text.text),
        vocab_size=text.vocab_size,
        length=text.length,
        test=text.test,
        test_share=text.test_share,
        cache=text.cache,
        report=report,
    )
    for depth in depths:
        settings.network.network(depth, corpus.vocab_size, corpus.length)
    start = select_held_out(corpus, settings.drawing.sequences, settings.drawing.seed)
    work = make_folder(settings.out / _WORK)
    busy = "wait for the other process that creates clones there, or stop it"
    with hold_lock(work / "lock", "out", str(settings.out), busy):
        _require_same_settings(work / _SETTINGS, settings.identity(corpus.fingerprint))
        clones = Clones.create(
            settings.out, corpus.tokenizer, length=corpus.length, vocab_size=corpus.vocab_size
        )
        if TEXT not in clones.names:
            clones.add(Clone(name=TEXT, tokens=start))
        yield MadeClone(clones[TEXT], None, None)
        maker = CloneMaker(
            network=settings.network,
            drawing=settings.drawing,
            train=corpus.train,
            scored=_scored_rows(corpus),
            start=start,
            vocab_size=corpus.vocab_size,
            # An existing clone with more sweeps is not replaced by one with fewer.
            sweeps={
                depth: int(clones[clone_name(depth)].sweeps or 0)
                for depth in depths
                if clone_name(depth) in clones.names
            },
            device=None if device is None else str(device),
            threads=threads,
        )
        if executor.alone(len(depths)):
            for depth in depths:
                made = maker.make(depth, work, progress=progress, report=report)
                clones.add(made.clone)
                yield made
        else:
            yield from _make_with_workers(maker, depths, work, executor, clones, report)


def select_held_out(corpus: Corpus, count: int, seed: int) -> Tensor:
    """Select random distinct sequences of the test set.

    Args:
        corpus: Tokenized text.
        count: Number of sequences.
        seed: Random seed.

    Returns:
        Token ids, int64 of shape (count, N).

    Raises:
        InputError: If the test set has fewer sequences.
    """
    if count > len(corpus.test):
        hint = f"use at most {len(corpus.test)}, the number of held-out sequences, or hold out more text"
        raise InputError("sequences", count, hint)
    chosen = torch.randperm(len(corpus.test), generator=generator(seed, "clones", "starts"))[:count]
    return corpus.test[chosen].clone()


def _scored_rows(corpus: Corpus) -> Tensor:
    return corpus.test[:: max(1, len(corpus.test) // _MAX_SCORED_ROWS)][:_MAX_SCORED_ROWS]


def _require_same_settings(path: Path, identity: dict[str, Any]) -> None:
    """Store the settings of the clones. Raises `InputError` if the folder has other settings."""
    wanted = json.loads(json.dumps(identity))
    stored = read_json_object(path, "out", "use another folder: it is damaged")
    if stored is None:
        atomic_write(path, json.dumps(wanted, indent=1) + "\n")
        return
    for field, value in wanted.items():
        if stored.get(field) != value:
            if field == "fingerprint":
                hint = f"use another folder: {path.parent.parent} has clones of another text or vocabulary"
                raise InputError("text", value, hint)
            hint = f"use another folder: the clones in {path.parent.parent} have {stored.get(field)}"
            raise InputError(field, value, hint)


def _make_with_workers(
    maker: CloneMaker,
    depths: Sequence[int],
    work: Path,
    executor: Executor,
    clones: Clones,
    report: Callable[[str], object],
) -> Iterator[MadeClone]:
    """Create clones with the workers of an executor, and yield each after storing it and its files."""
    accelerated = maker.device is None or maker.device.startswith("cuda")
    with SharedFolder(work).open() as folder:
        # Workers without access to the folder receive its files.
        kept = {} if executor.same_disk else _files(work)
        with executor.start_workers(
            partial(_start_worker, maker, folder, kept), len(depths), accelerated=accelerated
        ) as workers:
            for _, (made, files) in workers.done([[depth] for depth in depths]):
                for path, content in files.items():
                    atomic_write(work / path, content)
                clones.add(made.clone)
                report(f"{made.clone.name}: finished")
                yield made


def _start_worker(
    maker: CloneMaker, folder: SharedFolder, kept: Files
) -> Callable[[int], tuple[MadeClone, Files]]:
    """Start a worker, and return its function, which creates a clone and returns its files that are not shared."""
    with folder.beginning() as work:
        if work != folder.path:
            for path, content in kept.items():
                atomic_write(work / path, content)
    torch.set_num_threads(maker.threads)

    def make(depth: int) -> tuple[MadeClone, Files]:
        if work == folder.path:
            return maker.make(depth, work), {}
        before = _files(work)
        made = maker.make(depth, work)
        # Return only changed files, since other workers may have newer versions of the rest.
        return made, {path: content for path, content in _files(work).items() if before.get(path) != content}

    return make


def _files(work: Path) -> Files:
    files = (path for part in ("networks", "chains") for path in (work / part).rglob("*") if path.is_file())
    return {str(path.relative_to(work)): path.read_bytes() for path in files}
