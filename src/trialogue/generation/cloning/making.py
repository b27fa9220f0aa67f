"""Clones of a user's text in a folder: networks trained, sequences drawn, and what is known of each."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.arrays import checked_device
from trialogue.data.clones import TEXT, Clone, Clones
from trialogue.data.corpus.corpus import Corpus
from trialogue.errors import InputError
from trialogue.executors import Executor
from trialogue.executors.local import Local
from trialogue.generation.cloning.apart import made_apart
from trialogue.generation.cloning.maker import Made, Maker, name_of
from trialogue.generation.cloning.settings import CloneSettings
from trialogue.randomness import generator
from trialogue.storage import atomic_write, locked, make_folder

_WORK, _SETTINGS = "making", "settings.json"
_SCORED = 1024
"""Held-out rows that a network's loss is measured on."""


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
            yield from made_apart(maker, depths, work, executor, clones, report)


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
    if not path.exists():
        atomic_write(path, json.dumps(wanted, indent=1) + "\n")
        return
    try:
        there = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError("out", str(path), "it is damaged: give another folder") from error
    for field, value in wanted.items():
        if there.get(field) != value:
            if field == "fingerprint":
                hint = f"{path.parent.parent} has clones of another text or vocabulary: give another folder"
                raise InputError("text", value, hint)
            hint = f"the clones in {path.parent.parent} have {there.get(field)}: give another folder"
            raise InputError(field, value, hint)
