"""Clones of a user's text in a folder: networks trained, sequences drawn, and what is known of each."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trialogue.analysis.cloning.drawing import draw
from trialogue.analysis.cloning.networks import factored_network
from trialogue.analysis.cloning.samplers import chain_of
from trialogue.analysis.cloning.settings import CloneSettings
from trialogue.arrays import checked_device
from trialogue.data.clones import TEXT, Clone, Clones
from trialogue.data.corpus.corpus import Corpus
from trialogue.errors import InputError
from trialogue.inference import Convergence, MaskedMetropolis
from trialogue.models.factored import FactoredAttention
from trialogue.randomness import generator, seed_of
from trialogue.storage import atomic_write, locked, make_folder
from trialogue.training import corpus_score

_WORK, _SETTINGS = "making", "settings.json"
_SCORED = 1024
"""Held-out rows that a network's loss is measured on."""


class Made(NamedTuple):
    """A clone, and what its chains did: nothing for the text itself."""

    clone: Clone
    convergence: Convergence | None
    energies: Tensor | None
    """(sweeps + 1,) float64: means over sequences, the first before the first sweep"""


def make_clones(
    settings: CloneSettings,
    *,
    device: torch.device | str | None = None,
    progress: bool = False,
    report: Callable[[str], object] = lambda _: None,
) -> Iterator[Made]:
    """The text itself and then a clone for each depth, each yielded when it is in the folder `settings.out`.

    What a run that was cut short has trained and drawn is kept in the folder, and the same settings go on with it; so
    does a run of more sweeps, or of other depths beside those that are there. Raises `InputError` as `Corpus.open` and
    `train` do, for fewer held-out sequences than are asked for, and for a folder of other clones.
    """
    where = checked_device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    text = settings.text
    corpus = Corpus.open(
        str(text.text),
        vocab_size=text.vocab_size,
        length=text.length,
        test=text.test,
        test_share=text.test_share,
        cache=text.cache,
        report=report,
    )
    for depth in settings.network.layers:
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
        for depth in settings.network.layers:
            report(f"layers-{depth}: training the network")
            network = factored_network(
                settings.network,
                depth,
                corpus.train,
                corpus.vocab_size,
                work / "networks",
                seed=settings.drawing.seed,
                device=where,
                progress=progress,
            )
            yield _made(settings, corpus, clones, network, start, report)


def _made(
    settings: CloneSettings,
    corpus: Corpus,
    clones: Clones,
    network: FactoredAttention,
    start: Tensor,
    report: Callable[[str], object],
) -> Made:
    drawing, depth = settings.drawing, network.config.layers
    name, order = f"layers-{depth}", network.config.max_order
    there = clones[name] if name in clones.names else None
    # More sweeps than are asked for are no reason to draw fewer anew.
    sweeps = max(drawing.sweeps, 0 if there is None else int(there.sweeps or 0))
    chain = chain_of(drawing.sampler, order)
    drawn = draw(
        chain,
        network,
        start.to(network.attention[0].device),
        sweeps,
        seed=seed_of(drawing.seed, "clone", depth),
        path=settings.out / _WORK / "chains" / f"{name}.safetensors",
        report=lambda done, energy: report(f"{name}: sweep {done} of {sweeps}, mean energy {energy:.2f}"),
    )
    found = drawn.convergence(sweeps)
    scored = chain if isinstance(chain, MaskedMetropolis) else None
    clone = Clone(
        name=name,
        tokens=drawn.samples[sweeps],
        source="factored-attention",
        layers=depth,
        max_order=None if order >= corpus.length else order,
        sampler=drawing.sampler,
        gauge=None if scored is None else scored.gauge,
        bodies=None if scored is None else float(scored.bodies),
        sweeps=sweeps,
        acceptance=drawn.acceptance,
        effective_sample_size=None if found is None else _number(found.effective_sample_size),
        r_hat=None if found is None else _number(found.r_hat),
        network_loss=corpus_score(network, _scored(corpus)).loss,
    )
    clones.add(clone)
    return Made(clone, found, drawn.energies.mean(1))


def held_out(corpus: Corpus, count: int, seed: int) -> Tensor:
    """Different held-out rows (count, N), in an order of their own."""
    if count > len(corpus.test):
        mend = f"the held-out text has {len(corpus.test)} sequences: use fewer, or hold more of the text out"
        raise InputError("sequences", count, mend)
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
                mend = f"{path.parent.parent} has clones of another text or vocabulary: give another folder"
                raise InputError("text", value, mend)
            mend = f"the clones in {path.parent.parent} have {there.get(field)}: give another folder"
            raise InputError(field, value, mend)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
