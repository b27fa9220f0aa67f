"""Data and models that the tasks of a run share: the split text, its vocabulary and the trained networks.

Each is computed when it is first needed and stored in the folder of artifacts. Other processes wait for it.
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
from trialogue.training import load_or_train
from trialogue.training.translation.distillation import cached_translations
from trialogue.training.translation.recipes import encode_pairs
from trialogue_lab.data.sentences import WORDS
from trialogue_lab.ledger import record_model
from trialogue_lab.studies.translation.config import DISTILLED, MASK_PREDICT, REFINER, TWIN, Config
from trialogue_lab.studies.translation.hub_pairs import HUB_PAIRS, load_hub_pairs
from trialogue_lab.studies.translation.variants import find_one_word_variants

_KIND = "trialogue translation pairs 1"
_DAMAGED = "delete the folder of artifacts and start the run again"


class HeldOut(NamedTuple):
    """Test sentences and their reference translations.

    Attributes:
        sources: Token ids of the sources, truncated to the maximum length of the models.
        source_texts: The sources as text.
        references: The references as text.
        lengths: Numbers of tokens of the references, including the end of the sequence.
        familiar: Whether a training target equals the reference up to one word.
    """

    sources: list[list[int]]
    source_texts: list[str]
    references: list[str]
    lengths: list[int]
    familiar: list[bool]


class TranslationCorpus(NamedTuple):
    """Training pairs, test sentences and vocabulary of a run.

    Attributes:
        train: Padded token ids of the sources and the targets, with the end of the sequence.
        tested: The test sentences.
        vocabulary: The vocabulary of both languages.
    """

    train: tuple[Tensor, Tensor]
    tested: HeldOut
    vocabulary: SubwordVocabulary


def load_corpus(config: Config, seed: int, artifacts: Path) -> TranslationCorpus:
    """Split and encode the text, or load the result from `artifacts`.

    The checksum of the text is recorded in the provenance of the run.

    Args:
        config: Settings of the run.
        seed: Seed of the split.
        artifacts: Folder of the prepared text.
    """
    folder = artifacts / f"text-{seed}"
    with _lock_artifact(artifacts, f"text-{seed}"):
        if not (folder / "tested.json").exists():
            _prepare(config, seed, folder)
    pairs, _ = read_tensors(folder / "train.safetensors", _KIND, _DAMAGED)
    held = json.loads((folder / "tested.json").read_text())
    record_model({"text": config.text or "made-up pairs", "sum": held.pop("sum")})
    vocabulary = SubwordVocabulary.open(folder / "vocabulary.json")
    return TranslationCorpus((pairs["sources"].long(), pairs["targets"].long()), HeldOut(**held), vocabulary)


def load_twin(config: Config, seed: int, artifacts: Path) -> CausalTranslator:
    """Train an autoregressive translation network (the twin), or load it from `artifacts`.

    Args:
        config: Settings of the run.
        seed: Seed of the split and the training.
        artifacts: Folder of the prepared text and the networks.
    """
    held = load_corpus(config, seed, artifacts)
    recipe = config.of(TWIN, seed).twin(len(held.vocabulary), *held.train)
    with _lock_artifact(artifacts, f"{TWIN}-{seed}"):
        return CausalTranslator(load_or_train(recipe, artifacts).network)


def load_refiner(config: Config, arm: str, seed: int, artifacts: Path) -> Refiner:
    """Train a refiner, or load it from `artifacts`.

    A refiner predicts all target tokens in parallel. Large refiners start from the weights of an autoregressive
    network, the twin, and are trained on its translations. Small refiners start from random weights.

    Args:
        config: Settings of the run.
        arm: Name of the refiner, for example "refiner", "mask-predict" or a small one like "one stage".
        seed: Seed of the split and the training.
        artifacts: Folder of the prepared text and the networks.
    """
    held, pupil = load_corpus(config, seed, artifacts), arm in (REFINER, MASK_PREDICT)
    sources, targets = held.train
    if pupil or arm == DISTILLED:
        targets = _translate_training_sources(config, seed, sources, artifacts)
    if not pupil:
        order = torch.randperm(len(sources), generator=generator(seed, "small pairs"))[: config.small_pairs]
        sources, targets = sources[order], targets[order]
    teacher = load_twin(config, seed, artifacts).model if pupil else None
    recipe = config.of(arm, seed).refiner(len(held.vocabulary), sources, targets, teacher)
    with _lock_artifact(artifacts, f"{arm}-{seed}"):
        return Refiner(load_or_train(recipe, artifacts).network)


def _translate_training_sources(config: Config, seed: int, sources: Tensor, artifacts: Path) -> Tensor:
    """Return the translations of the training sources by the autoregressive network."""
    twin = load_twin(config, seed, artifacts)
    with _lock_artifact(artifacts, f"distilled-{seed}"):
        return cached_translations(twin, sources, artifacts / f"distilled-{seed}.safetensors")


def _prepare(config: Config, seed: int, folder: Path) -> None:
    parts = _split(config, seed)
    if len(parts.test.sources) < config.test:
        hint = f"use at most the {len(parts.test.sources)} test pairs of the text"
        raise InputError("test", config.test, hint)
    texts = [*parts.train.sources, *parts.train.targets]
    vocabulary = SubwordVocabulary.train(texts, config.vocab_size)
    vocabulary.save(folder / "vocabulary.json")
    train = (vocabulary.encode(parts.train.sources), vocabulary.encode(parts.train.targets))
    sources, targets = encode_pairs(*train, config.max_length)
    write_tensors(folder / "train.safetensors", _KIND, {"sources": sources, "targets": targets}, {})
    tested_part = slice(0, config.test)
    encoded = vocabulary.encode(parts.test.sources[tested_part])
    tested = HeldOut(
        [source[: config.max_length] for source in encoded],
        parts.test.sources[tested_part],
        parts.test.targets[tested_part],
        [len(target) + 1 for target in vocabulary.encode(parts.test.targets[tested_part])],
        find_one_word_variants(parts.test.targets[tested_part], parts.train.targets).tolist(),
    )
    content = json.dumps([texts, tested.source_texts, tested.references]).encode()
    held = {**tested._asdict(), "sum": hashlib.sha256(content).hexdigest()}
    # This file is written last and marks the folder as complete.
    atomic_write(folder / "tested.json", json.dumps(held))


def _split(config: Config, seed: int) -> Split:
    if config.text in HUB_PAIRS:
        return load_hub_pairs(config.text)
    if config.text and not Path(config.text).exists():
        hint = f"give an existing table of pairs, or one of {', '.join(HUB_PAIRS)}"
        raise InputError("text", config.text, hint)
    text = ParallelText.read(config.text, config.columns) if config.text else _generate_pairs()
    return split(text, config.test, config.validation, seed=seed)


def _generate_pairs() -> ParallelText:
    """Return about a thousand generated sentence pairs, for tests.

    The words of a translation are reversed, and stand in another order.
    """
    sentences = list(product(*WORDS))
    targets = [f"{subject} {verb} a {adjective} {noun}." for subject, verb, adjective, noun in sentences]
    sources = [
        f"{subject} {noun[::-1]} {adjective[::-1]} {verb[::-1]}."
        for subject, verb, adjective, noun in sentences
    ]
    return ParallelText(sources, targets)


@contextmanager
def _lock_artifact(artifacts: Path, name: str) -> Iterator[None]:
    """Ensure that only one process at a time computes the stored result `name`."""
    artifacts.mkdir(parents=True, exist_ok=True)
    with FileLock(artifacts / f".{name.replace(' ', '-')}.lock"):
        yield
