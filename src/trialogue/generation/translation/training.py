"""A translation model from a user's own pairs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.data.parallel.splitting import Split, split
from trialogue.data.parallel.text import ParallelText
from trialogue.data.parallel.vocabulary import SubwordVocabulary
from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.generation.translation.lines import LineTranslator
from trialogue.generation.translation.model import CARD, HELD_OUT, Network, TranslationModel
from trialogue.generation.translation.scores import quality, stutter
from trialogue.generation.translation.settings import Pairs, Translating
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.storage import atomic_write, make_folder, sha256_of
from trialogue.training.recipes import trained
from trialogue.training.running.processes import processes
from trialogue.training.translation.distillation import kept_translations
from trialogue.training.translation.recipes import TranslationTraining, encoded_pairs

_UNFINISHED = ".unfinished"
_VALIDATION = 1


class TrainedModel(NamedTuple):
    """A model, the split of the pairs it was trained on, and what its networks make of the held-out ones."""

    model: TranslationModel
    split: Split
    scores: dict[Network, dict[str, Any]]


def train_translation(
    pairs: Pairs, training: TranslationTraining, report: Callable[[str], object] = str
) -> TrainedModel:
    """Train what `pairs` asks for as `training` says, and save it with scores of held-out pairs.

    `report` is told of every stage. A training that was cut short goes on where it was. Under torchrun every process
    calls this, and the main one alone reports and writes. Raises `InputError` for pairs that cannot be read or are too
    few, and where the folder has a model already, which leaves nothing behind, or cannot be written.
    """
    from_extra("sacrebleu", "score")  # needed after the training
    assert pairs.out is not None  # its class sees to it
    together = processes()
    tell = report if together.is_main_process else str
    folder = pairs.out
    if (folder / CARD).exists():
        raise InputError(
            "out", str(folder), "it holds a model already: name another folder, or delete that one"
        )
    text, source = _read(pairs)
    parts = split(text, pairs.test, _VALIDATION, seed=training.seed)
    texts = [*parts.train.sources, *parts.train.targets]
    vocabulary = SubwordVocabulary.train(texts, pairs.vocab, field="vocab")
    encoded = (vocabulary.encode(parts.train.sources), vocabulary.encode(parts.train.targets))
    sources, targets = encoded_pairs(*encoded, training.max_length)
    first = training.refiner if pairs.networks == "refiner" else training.twin
    recipe = first(len(vocabulary), sources, targets)
    if together.is_main_process:
        make_folder(folder)
    tell(
        f"{len(text):,} pairs, {len(sources):,} to train on; left out are {text.left_out:,} with an empty side and "
        f"{len(parts.train) - len(sources):,} of more than {training.max_length} tokens"
    )
    networks: dict[Network, EncoderDecoder] = {}
    work = folder / _UNFINISHED
    if pairs.networks != "refiner":
        tell("training the twin")
        networks["twin"] = trained(recipe, work, progress=True).network
        if pairs.distil:
            tell("translating the sources by the twin")
            path = work / f"distilled-{recipe.hash}.safetensors"
            targets = kept_translations(CausalTranslator(networks["twin"]), sources, path, progress=True)
    if pairs.networks != "twin":
        tell("training the refiner")
        teacher = networks["twin"] if pairs.distil else None
        recipe = training.refiner(len(vocabulary), sources, targets, teacher)
        networks["refiner"] = trained(recipe, work, progress=True).network
    model = TranslationModel(vocabulary, networks)
    tell(f"translating {len(parts.test):,} held-out pairs")
    scores = {network: _scored(model, network, parts.test, pairs.tokenize) for network in networks}
    card = {
        **source,
        "pairs": len(sources),
        "distil": pairs.distil,
        "training": asdict(training),
        "held_out": {
            "test": pairs.test,
            "validation": _VALIDATION,
            "of": len(text),
            "seed": training.seed,
            "files": HELD_OUT,
        },
        "scores": scores,
    }
    if together.is_main_process:
        for name, sentences in zip(HELD_OUT, (parts.test.sources, parts.test.targets), strict=True):
            atomic_write(folder / name, "".join(f"{sentence}\n" for sentence in sentences))
        model.save(folder, card)
    # Another process may still be reading what lies in the folder that goes.
    together.wait_for_everyone()
    if together.is_main_process:
        shutil.rmtree(work, ignore_errors=True)
    together.wait_for_everyone()
    return TrainedModel(model, parts, scores)


def _read(pairs: Pairs) -> tuple[ParallelText, dict[str, Any]]:
    """The pairs, and what the card says of where they are from."""
    assert pairs.text is not None  # its class sees to it
    paths = [pairs.text] if pairs.targets is None else [pairs.text, pairs.targets]
    text = (
        ParallelText.read(pairs.text, pairs.columns)
        if pairs.targets is None
        else ParallelText.read_pair(pairs.text, pairs.targets)
    )
    columns = {"columns": pairs.columns} if pairs.targets is None else {}
    files = [{"name": path.name, "sha256": sha256_of(path)} for path in paths]
    return text, {"text": pairs.text.name, "files": files, **columns}


def _scored(model: TranslationModel, network: Network, tested: ParallelText, tokenize: str) -> dict[str, Any]:
    """Return the scores of the translations of `tested` that `trialogue translate` writes by default."""
    settings = Translating(Path(), network=network)
    translator = LineTranslator(model, settings, truncate=True)
    outputs = [answer.text for answer in translator.answers(tested.sources, 32)]
    return {
        **quality(outputs, tested.targets, tokenize)._asdict(),
        "repeated_words": stutter(outputs, tested.targets).rate,
        "translated_with": {name: value for name, value in asdict(settings).items() if name != "model"},
    }
