"""From labelled texts to a verifier: hidden states, a search over layers and depths, calibration, threshold, test."""

import re
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError, out_of_memory
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.networks.probe import Probe, hidden_states_of_prefixes
from trialogue.training.probes.calibration import (
    Floats,
    check_false_rejections,
    fit_calibration,
    rejection_threshold,
    verifier_numbers,
    youden_threshold,
)
from trialogue.training.probes.grid import search_probes
from trialogue.training.probes.probe_config import ProbeTrainingConfig
from trialogue.training.probes.probe_examples import (
    ExampleSplit,
    LabelledText,
    LabelledTexts,
    ProbeExamples,
    prefix_examples,
    split_examples,
)
from trialogue.training.probes.probe_files import GridEntry, PartSizes, ProbeFile


def chosen_layers(layers: str | Sequence[int], blocks: int) -> tuple[int, ...]:
    """The layers that `layers` means for a model of so many `blocks`: numbers, "all" or "every:N".

    The last block's output counts as -1: what the head reads, after the final norm. "every:N" counts back from it.
    """
    if not isinstance(layers, str):
        numbers = tuple(dict.fromkeys(-1 if layer == blocks else layer for layer in layers))
        for layer in numbers:
            if not -1 <= layer < blocks:
                raise InputError("layers", layer, f"the model has {blocks} blocks: use -1, or 0 to {blocks}")
        if not numbers:
            raise InputError("layers", (), "name at least one")
        return numbers
    step = 1 if layers == "all" else int(layers[6:]) if re.fullmatch(r"every:[1-9]\d{0,5}", layers) else 0
    if not step:
        raise InputError("layers", layers, "use numbers of layers, all, or every:N")
    return (*sorted(range(blocks - step, 0, -step)), -1)


def check_texts(texts: Sequence[LabelledText], config: ProbeTrainingConfig) -> None:
    """Raise `InputError` where the labels of `texts` alone tell that they are too few, before a model is needed.

    A text with an error position is taken to give as many correct prefixes as it ever could.
    """
    labels, text = [], []
    for index, one in enumerate(texts):
        if one.label is not None:
            text_labels = [one.label]
        else:
            text_labels = [1] * (0 if one.error == 0 else config.correct_prefixes) + [0] * (
                one.error is not None
            )
        labels += text_labels
        text += [index] * len(text_labels)
    most = ProbeExamples(sequences=[], lengths=[], labels=torch.tensor(labels), text=torch.tensor(text))
    _checked_split(texts, most, config)


def _checked_split(
    texts: Sequence[LabelledText], examples: ProbeExamples, config: ProbeTrainingConfig
) -> ExampleSplit:
    """The parts that texts are dealt out to; raises `InputError` where one is too small for its use."""
    split = split_examples(
        texts,
        examples,
        validation=config.validation,
        test=config.test,
        by=config.split_by,
        seed=config.seed,
    )
    if config.threshold is None:
        check_false_rejections(config.false_rejections, int(examples.labels[split.calibration].sum()))
    return split


def train_verifier(
    oracle: PretrainedOracle,
    data: LabelledTexts,
    config: ProbeTrainingConfig | None = None,
    *,
    name: str = "",
    progress: bool = False,
) -> ProbeFile:
    """Train a verifier of prefixes on the hidden states of `oracle` for the texts of `data`, which are called `name`.

    Texts are split into four parts: probes learn from the first, are compared on the second, the best is calibrated
    and gets its threshold on the third, and its numbers come from the fourth. With `progress` bars are drawn on
    standard error, if that is a terminal. Raises `InputError` for texts that cannot be used (`prefix_examples`,
    `split_examples`), layers that the model lacks, too few texts for the threshold, or want of memory.
    """
    config = ProbeTrainingConfig() if config is None else config
    layers = chosen_layers(config.layers, oracle.layers)
    examples = prefix_examples(
        data.texts,
        oracle.tokenization,
        max_length=oracle.max_length,
        correct_prefixes=config.correct_prefixes,
        chat=config.chat,
        eos=config.eos,
        seed=config.seed,
    )
    # Before the expensive part: what comes after it must not fail for want of texts.
    split = _checked_split(data.texts, examples, config)
    labels = examples.labels.numpy()
    states = _states(oracle, examples, layers, config.batch_size, progress)
    with tqdm(
        total=len(layers) * len(config.depths), unit="probe", disable=None if progress else True
    ) as bar:
        candidates = search_probes(
            states,
            examples.labels,
            layers,
            config.depths,
            split.train,
            split.selection,
            config.probe(),
            patience=config.patience,
            trained=lambda _: bar.update(),
        )
    best = candidates[0]
    of_layer = states[:, layers.index(best.layer)]
    held_out = _log_odds(best.probe, of_layer[split.calibration])
    held_out_labels = labels[split.calibration.numpy()]
    calibration = fit_calibration(held_out, held_out_labels, config.calibration)
    probe = best.probe.rescaled(*calibration)
    threshold = _threshold(config, _probabilities(probe, of_layer[split.calibration]), held_out_labels)
    numbers = verifier_numbers(
        _probabilities(probe, of_layer[split.test]),
        labels[split.test.numpy()],
        threshold,
        _probabilities(best.probe, of_layer[split.test]),
    )
    return ProbeFile(
        probe=probe,
        layer=best.layer,
        threshold=threshold,
        model=oracle.name,
        data=name,
        data_sha256=data.sha256,
        method=config.calibration,
        calibration=calibration,
        numbers=numbers,
        grid=tuple(GridEntry(c.layer, c.depth, c.epoch, c.log_loss, c.accuracy) for c in candidates),
        parts=_parts(examples, split),
        settings=asdict(config) | {"layers": list(layers), "depths": list(config.depths)},
    )


def _states(
    oracle: PretrainedOracle, examples: ProbeExamples, layers: Sequence[int], batch_size: int, progress: bool
) -> Tensor:
    """Hidden states (n, len(layers), width) of the examples."""
    try:
        with tqdm(total=examples.positions, unit="token", disable=None if progress else True) as bar:
            return hidden_states_of_prefixes(
                oracle,
                examples.sequences,
                examples.lengths,
                layers,
                batch_size=batch_size,
                evaluated=bar.update,
            )
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        longest = max(map(len, examples.sequences))
        hint = f"out of memory with texts of up to {longest} tokens and {len(layers)} layers: "
        hint += f"use {max(1, batch_size // 2)} texts at once, or fewer layers"
        raise InputError("batch_size", batch_size, hint) from error


def _log_odds(probe: Probe, states: Tensor) -> Floats:
    logits = probe(states).double()
    odds: Floats = (logits[:, 1] - logits[:, 0]).numpy()
    return odds


def _probabilities(probe: Probe, states: Tensor) -> Floats:
    # As the verifier computes it, so that a prefix at the threshold stays there.
    probabilities: Floats = probe.probability(states).double().numpy()
    return probabilities


def _threshold(config: ProbeTrainingConfig, probabilities: Floats, labels: np.ndarray) -> float:
    if config.threshold is None:
        return rejection_threshold(probabilities, labels, config.false_rejections)
    return youden_threshold(probabilities, labels) if isinstance(config.threshold, str) else config.threshold


def _parts(examples: ProbeExamples, split: ExampleSplit) -> dict[str, PartSizes]:
    parts = {}
    for name, rows in split._asdict().items():
        correct = int(examples.labels[rows].sum())
        parts[name] = PartSizes(len(examples.text[rows].unique()), correct, len(rows) - correct)
    return parts
