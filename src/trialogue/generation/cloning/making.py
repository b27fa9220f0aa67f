"""Clones of a user's text in a folder: networks trained, sequences drawn, and what is known of each."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import checked_device
from trialogue.data.clones import TEXT, Clone, Clones
from trialogue.data.corpus.corpus import Corpus
from trialogue.errors import InputError
from trialogue.executors import Executor
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local
from trialogue.generation.cloning.maker import Made, Maker, name_of
from trialogue.generation.cloning.settings import CloneSettings
from trialogue.randomness import generator
from trialogue.storage import atomic_write, locked, make_folder, stored_object

_WORK, _SETTINGS = "making", "settings.json"
_SCORED = 1024
"""Held-out rows that a network's loss is measured on."""
Files = Mapping[str, bytes]
"""By their paths in a folder."""


def make_clones(
    settings: CloneSettings,
    *,
    device: torch.device | str | None = None,
    executor: Executor | None = None,
    threads: int = 1,
    progress: bool = False,
    report: Callable[[str], object] = lambda _: None,
) -> Iterator[Made]:
    """The text itself and then a clone for each depth, each yielded when it is in the folder `settings.out`.

    What a run that was cut short has trained and drawn is kept in the folder, and the same settings go on with it; so
    does a run of more sweeps, or of other depths beside those that are there. The workers of an `executor` make clones
    at the same time, each with `threads` threads of torch; they come in the order in which they are ready. Raises
    `InputError` as `Corpus.open` and `train` do, for fewer held-out sequences than are asked for, and for a folder of
    other clones.
    """
    executor = executor or Local()
    if device is not None and executor.same_disk:
        checked_device(device)
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
    start = held_out(corpus, settings.drawing.sequences, settings.drawing.seed)
    work = make_folder(settings.out / _WORK)
    busy = "another process makes clones there: wait for it, or stop it"
    with locked(work / "lock", "out", str(settings.out), busy):
        _require_same(work / _SETTINGS, settings.identity(corpus.fingerprint))
        clones = Clones.create(
            settings.out, corpus.tokenizer, length=corpus.length, vocab_size=corpus.vocab_size
        )
        if TEXT not in clones.names:
            clones.add(Clone(name=TEXT, tokens=start))
        yield Made(clones[TEXT], None, None)
        maker = Maker(
            network=settings.network,
            drawing=settings.drawing,
            train=corpus.train,
            scored=_scored(corpus),
            start=start,
            vocab_size=corpus.vocab_size,
            # More sweeps than are asked for are no reason to draw fewer anew.
            sweeps={
                depth: int(clones[name_of(depth)].sweeps or 0)
                for depth in depths
                if name_of(depth) in clones.names
            },
            device=None if device is None else str(device),
            threads=threads,
        )
        if executor.alone(len(depths)):
            for depth in depths:
                made = maker.made(depth, work, progress=progress, report=report)
                clones.add(made.clone)
                yield made
        else:
            yield from _made_apart(maker, depths, work, executor, clones, report)


def held_out(corpus: Corpus, count: int, seed: int) -> Tensor:
    """Different held-out rows (count, N), in an order of their own."""
    if count > len(corpus.test):
        hint = f"the held-out text has {len(corpus.test)} sequences: use fewer, or hold more of the text out"
        raise InputError("sequences", count, hint)
    chosen = torch.randperm(len(corpus.test), generator=generator(seed, "clones", "starts"))[:count]
    return corpus.test[chosen].clone()


def _scored(corpus: Corpus) -> Tensor:
    return corpus.test[:: max(1, len(corpus.test) // _SCORED)][:_SCORED]


def _require_same(path: Path, identity: dict[str, Any]) -> None:
    """Keep what makes clones go together; raises `InputError` where the folder has others."""
    wanted = json.loads(json.dumps(identity))
    there = stored_object(path, "out", "it is damaged: give another folder")
    if there is None:
        atomic_write(path, json.dumps(wanted, indent=1) + "\n")
        return
    for field, value in wanted.items():
        if there.get(field) != value:
            if field == "fingerprint":
                hint = f"{path.parent.parent} has clones of another text or vocabulary: give another folder"
                raise InputError("text", value, hint)
            hint = f"the clones in {path.parent.parent} have {there.get(field)}: give another folder"
            raise InputError(field, value, hint)


def _made_apart(
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
