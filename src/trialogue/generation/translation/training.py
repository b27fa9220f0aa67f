"""A translation model from a user's own pairs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from typing import NamedTuple

from trialogue.data.parallel.splitting import Split, split
from trialogue.data.parallel.text import ParallelText
from trialogue.data.parallel.vocabulary import SubwordVocabulary
from trialogue.errors import InputError
from trialogue.generation.translation.model import CARD, Network, TranslationModel
from trialogue.generation.translation.settings import Pairs
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.storage import make_folder
from trialogue.training.recipes import trained
from trialogue.training.translation.distillation import kept_translations
from trialogue.training.translation.recipes import TranslationTraining, encoded_pairs

_UNFINISHED = ".unfinished"


class TrainedModel(NamedTuple):
    """A model, the split of the pairs it was trained on, and how many of these were too long to train on."""

    model: TranslationModel
    split: Split
    too_long: int


def train_translation(
    pairs: Pairs, training: TranslationTraining, report: Callable[[str], object] = str
) -> TrainedModel:
    """Train what `pairs` asks for as `training` says, and save it; `report` is told of every stage.

    A training that was cut short goes on where it was. Raises `InputError` for pairs that cannot be read or are too
    few, and where the folder cannot be written or has a model already.
    """
    assert pairs.text is not None  # its class sees to it
    assert pairs.out is not None
    folder = make_folder(pairs.out)
    if (folder / CARD).exists():
        raise InputError(
            "out", str(pairs.out), "it holds a model already: name another folder, or delete that one"
        )
    text = (
        ParallelText.read(pairs.text, pairs.columns)
        if pairs.targets is None
        else ParallelText.read_pair(pairs.text, pairs.targets)
    )
    parts = split(text, pairs.test, 1, seed=training.seed)
    texts = [*parts.train.sources, *parts.train.targets]
    vocabulary = SubwordVocabulary.train(texts, pairs.vocab, field="vocab")
    encoded = (vocabulary.encode(parts.train.sources), vocabulary.encode(parts.train.targets))
    sources, targets = encoded_pairs(*encoded, training.max_length)
    report(
        f"{len(text):,} pairs, {len(sources):,} to train on, {text.left_out:,} with an empty side left out"
    )
    networks: dict[Network, EncoderDecoder] = {}
    work = folder / _UNFINISHED
    if pairs.networks != "refiner":
        report("training the twin")
        recipe = training.twin(len(vocabulary), sources, targets)
        networks["twin"] = trained(recipe, work, progress=True).network
        if pairs.distil:
            report("translating the sources by the twin")
            path = work / f"distilled-{recipe.hash}.safetensors"
            targets = kept_translations(CausalTranslator(networks["twin"]), sources, path, progress=True)
    if pairs.networks != "twin":
        report("training the refiner")
        teacher = networks["twin"] if pairs.distil else None
        recipe = training.refiner(len(vocabulary), sources, targets, teacher)
        networks["refiner"] = trained(recipe, work, progress=True).network
    model = TranslationModel(vocabulary, networks)
    card = {
        "text": pairs.text.name,
        "pairs": len(sources),
        "distil": pairs.distil,
        "training": asdict(training),
    }
    model.save(folder, card)
    shutil.rmtree(work, ignore_errors=True)
    return TrainedModel(model, parts, len(encoded[0]) - len(sources))
