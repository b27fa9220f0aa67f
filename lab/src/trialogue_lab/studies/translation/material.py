"""What the parts of a run share: the split text, its vocabulary, and the networks trained on it.

Everything is made where it is first asked for, kept in the folder of artifacts, and waited for by other processes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from filelock import FileLock
from torch import Tensor

from trialogue.data.parallel.splitting import Split, split
from trialogue.data.parallel.text import ParallelText
from trialogue.data.parallel.vocabulary import SubwordVocabulary
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.randomness import generator
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training import trained
from trialogue.training.translation.distillation import kept_translations
from trialogue.training.translation.recipes import encoded_pairs
from trialogue_lab.ledger import note_model
from trialogue_lab.studies.translation.config import DISTILLED, MASK_PREDICT, REFINER, TWIN, Config
from trialogue_lab.studies.translation.hub_pairs import HUB_PAIRS, hub_parallel
from trialogue_lab.studies.translation.variants import one_word_variants

_KIND = "trialogue translation pairs 1"
_DAMAGED = "delete the folder of artifacts, so that it is made again"


class HeldOut(NamedTuple):
    """The test sentences of a split, dealt out to sets in turns."""

    sources: list[list[int]]
    """Tokens of the sources, cut to what the models read"""
    source_texts: list[str]
    references: list[str]
    lengths: list[int]
    """Tokens of the references, EOS with them"""
    familiar: list[bool]
    """A training sentence has the target but for one word"""


class Material(NamedTuple):
    """Pairs to train on, as tokens with EOS and PAD; the test sentences; the vocabulary."""

    train: tuple[Tensor, Tensor]
    tested: HeldOut
    vocabulary: SubwordVocabulary


def material(config: Config, seed: int, artifacts: Path) -> Material:
    """The split and encoded text; the provenance of the part says which text it was."""
    folder = artifacts / f"text-{seed}"
    with _alone(artifacts, f"text-{seed}"):
        if not (folder / "tested.json").exists():
            _prepare(config, seed, folder)
    pairs, _ = read_tensors(folder / "train.safetensors", _KIND, _DAMAGED)
    held = json.loads((folder / "tested.json").read_text())
    note_model({"text": config.text or "made-up pairs", "sum": held.pop("sum")})
    vocabulary = SubwordVocabulary.open(folder / "vocabulary.json")
    return Material((pairs["sources"].long(), pairs["targets"].long()), HeldOut(**held), vocabulary)


def twin_of(config: Config, seed: int, artifacts: Path) -> CausalTranslator:
    """The autoregressive twin."""
    held = material(config, seed, artifacts)
    recipe = config.of(TWIN, seed).twin(len(held.vocabulary), *held.train)
    with _alone(artifacts, f"{TWIN}-{seed}"):
        return CausalTranslator(trained(recipe, artifacts).network)


def refiner_of(config: Config, arm: str, seed: int, artifacts: Path) -> Refiner:
    """The refiner `arm`: one that is trained for long, as the twin's pupil, or a small one."""
    held, pupil = material(config, seed, artifacts), arm in (REFINER, MASK_PREDICT)
    sources, targets = held.train
    if pupil or arm == DISTILLED:
        targets = _distilled(config, seed, sources, artifacts)
    if not pupil:
        order = torch.randperm(len(sources), generator=generator(seed, "small pairs"))[: config.small_pairs]
        sources, targets = sources[order], targets[order]
    teacher = twin_of(config, seed, artifacts).model if pupil else None
    recipe = config.of(arm, seed).refiner(len(held.vocabulary), sources, targets, teacher)
    with _alone(artifacts, f"{arm}-{seed}"):
        return Refiner(trained(recipe, artifacts).network)


def _distilled(config: Config, seed: int, sources: Tensor, artifacts: Path) -> Tensor:
    """What the twin makes of the sources, in place of their targets."""
    twin = twin_of(config, seed, artifacts)
    with _alone(artifacts, f"distilled-{seed}"):
        return kept_translations(twin, sources, artifacts / f"distilled-{seed}.safetensors")


def _prepare(config: Config, seed: int, folder: Path) -> None:
    parts = _split(config, seed)
    if len(parts.test.sources) < config.test:
        hint = f"the text has {len(parts.test.sources)} pairs to test on: ask for at most as many"
        raise InputError("test", config.test, hint)
    texts = [*parts.train.sources, *parts.train.targets]
    vocabulary = SubwordVocabulary.train(texts, config.vocab_size)
    vocabulary.save(folder / "vocabulary.json")
    train = (vocabulary.encode(parts.train.sources), vocabulary.encode(parts.train.targets))
    sources, targets = encoded_pairs(*train, config.max_length)
    write_tensors(folder / "train.safetensors", _KIND, {"sources": sources, "targets": targets}, {})
    told = slice(0, config.test)
    read = vocabulary.encode(parts.test.sources[told])
    tested = HeldOut(
        [source[: config.max_length] for source in read],
        parts.test.sources[told],
        parts.test.targets[told],
        [len(target) + 1 for target in vocabulary.encode(parts.test.targets[told])],
        one_word_variants(parts.test.targets[told], parts.train.targets).tolist(),
    )
    content = json.dumps([texts, tested.source_texts, tested.references]).encode()
    held = {**tested._asdict(), "sum": hashlib.sha256(content).hexdigest()}
    # Last: where it is, all is.
    atomic_write(folder / "tested.json", json.dumps(held))


def _split(config: Config, seed: int) -> Split:
    if config.text in HUB_PAIRS:
        return hub_parallel(config.text)
    if config.text and not Path(config.text).exists():
        hint = f"name a table of pairs that is there, or one of {', '.join(HUB_PAIRS)}"
        raise InputError("text", config.text, hint)
    text = ParallelText.read(config.text, config.columns) if config.text else _made_up()
    return split(text, config.test, config.validation, seed=seed)


def _made_up() -> ParallelText:
    """A thousand sentences and their translations, word by word and in another order, into words that do not exist."""
    parts = (
        ("Lily", "Tom", "Max", "Sue", "Ben", "Anna"),
        ("saw", "found", "liked", "lost", "took"),
        ("red", "blue", "big", "shiny", "old"),
        ("ball", "box", "cat", "stone", "cup", "tree", "hat"),
    )
    targets = [f"{who} {did} a {how} {what}." for who, did, how, what in product(*parts)]
    sources = [f"{who} {what[::-1]} {how[::-1]} {did[::-1]}." for who, did, how, what in product(*parts)]
    return ParallelText(sources, targets)


@contextmanager
def _alone(artifacts: Path, name: str) -> Iterator[None]:
    """While this process makes what has that name, others that ask for it wait."""
    artifacts.mkdir(parents=True, exist_ok=True)
    with FileLock(artifacts / f".{name.replace(' ', '-')}.lock"):
        yield
