"""Training of a translation model on sentence pairs."""

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
from trialogue.generation.translation.scores import count_repeated_words, translation_quality
from trialogue.generation.translation.settings import PairSettings, TranslationSettings
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.storage import atomic_write, compute_sha256, make_folder
from trialogue.training.recipes import load_or_train
from trialogue.training.running.processes import get_processes
from trialogue.training.translation.distillation import cached_translations
from trialogue.training.translation.recipes import TranslationTraining, encode_pairs

_UNFINISHED = ".unfinished"
_VALIDATION = 1


class TrainedModel(NamedTuple):
    """A trained translation model with its scores on held-out sentence pairs.

    Attributes:
        model: The model.
        split: Training, validation and test pairs.
        scores: For each network, by name, its scores on the test pairs, as JSON values.
    """

    model: TranslationModel
    split: Split
    scores: dict[Network, dict[str, Any]]


def train_translation(
    pairs: PairSettings, training: TranslationTraining, report: Callable[[str], object] = str
) -> TrainedModel:
    """Train a translation model and save it with its scores on held-out pairs.

    An interrupted training resumes. Under torchrun every process calls this function, and only the main
    process reports and writes.

    Args:
        pairs: Options on the data and networks.
        training: Options on the training.
        report: Function called with a message at every stage.

    Returns:
        The model, the split of the sentence pairs, and the scores.

    Raises:
        InputError: If the pairs cannot be read or are too few. Also if the folder already contains a model or
            is not writable.
    """
    from_extra("sacrebleu", "score")  # Check for the package before the training, which takes long.
    assert pairs.out is not None  # Checked by `PairSettings`.
    group = get_processes()
    notify = report if group.is_main_process else str
    folder = pairs.out
    if (folder / CARD).exists():
        raise InputError("out", str(folder), "use another folder or delete this one: it contains a model")
    text, source = _read(pairs)
    parts = split(text, pairs.test, _VALIDATION, seed=training.seed)
    texts = [*parts.train.sources, *parts.train.targets]
    vocabulary = SubwordVocabulary.train(texts, pairs.vocab, field="vocab")
    encoded = (vocabulary.encode(parts.train.sources), vocabulary.encode(parts.train.targets))
    sources, targets = encode_pairs(*encoded, training.max_length)
    first = training.refiner if pairs.networks == "refiner" else training.twin
    recipe = first(len(vocabulary), sources, targets)
    if group.is_main_process:
        make_folder(folder)
    notify(
        f"{len(text):,} pairs, {len(sources):,} for training; skipped {text.left_out:,} with an empty side and "
        f"{len(parts.train) - len(sources):,} with more than {training.max_length} tokens"
    )
    networks: dict[Network, EncoderDecoder] = {}
    work = folder / _UNFINISHED
    if pairs.networks != "refiner":
        notify("training the twin")
        networks["twin"] = load_or_train(recipe, work, progress=True).network
        if pairs.distil:
            notify("translating the sources by the twin")
            path = work / f"distilled-{recipe.hash}.safetensors"
            targets = cached_translations(CausalTranslator(networks["twin"]), sources, path, progress=True)
    if pairs.networks != "twin":
        notify("training the refiner")
        teacher = networks["twin"] if pairs.distil else None
        recipe = training.refiner(len(vocabulary), sources, targets, teacher)
        networks["refiner"] = load_or_train(recipe, work, progress=True).network
    model = TranslationModel(vocabulary, networks)
    notify(f"translating {len(parts.test):,} held-out pairs")
    scores = {network: _evaluate(model, network, parts.test, pairs.tokenize) for network in networks}
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
    if group.is_main_process:
        for name, sentences in zip(HELD_OUT, (parts.test.sources, parts.test.targets), strict=True):
            atomic_write(folder / name, "".join(f"{sentence}\n" for sentence in sentences))
        model.save(folder, card)
    # Other processes may still read files in the folder.
    group.wait_for_everyone()
    if group.is_main_process:
        shutil.rmtree(work, ignore_errors=True)
    group.wait_for_everyone()
    return TrainedModel(model, parts, scores)


def _read(pairs: PairSettings) -> tuple[ParallelText, dict[str, Any]]:
    """Return the sentence pairs and their description for the card."""
    assert pairs.text is not None  # Checked by `PairSettings`.
    paths = [pairs.text] if pairs.targets is None else [pairs.text, pairs.targets]
    text = (
        ParallelText.read(pairs.text, pairs.columns)
        if pairs.targets is None
        else ParallelText.read_pair(pairs.text, pairs.targets)
    )
    columns = {"columns": pairs.columns} if pairs.targets is None else {}
    files = [{"name": path.name, "sha256": compute_sha256(path)} for path in paths]
    return text, {"text": pairs.text.name, "files": files, **columns}


def _evaluate(
    model: TranslationModel, network: Network, held_out: ParallelText, tokenize: str
) -> dict[str, Any]:
    """Return the scores of translations with the default settings of `trialogue translate`."""
    settings = TranslationSettings(Path(), network=network)
    translator = LineTranslator(model, settings, truncate=True)
    outputs = [result.text for result in translator.translate(held_out.sources, 32)]
    return {
        **translation_quality(outputs, held_out.targets, tokenize)._asdict(),
        "repeated_words": count_repeated_words(outputs, held_out.targets).rate,
        "translated_with": {name: value for name, value in asdict(settings).items() if name != "model"},
    }
