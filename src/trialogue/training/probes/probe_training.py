"""Training of a verifier from labelled texts.

The steps are a grid search over layers and depths, calibration, choice of the threshold, and a test.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError, is_out_of_memory
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.networks.probe import Probe, hidden_states_of_prefixes
from trialogue.training.probes.calibration import (
    Floats,
    compute_verifier_metrics,
    fit_calibration,
    rejection_threshold,
    require_enough_correct,
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
from trialogue.training.probes.probe_files import GridEntry, ProbeFile, SplitSizes


def resolve_layers(layers: str | Sequence[int], blocks: int) -> tuple[int, ...]:
    """Convert the option `layers` to block numbers of a model.

    Args:
        layers: Block numbers, "all", or "every:N", which takes each N-th block counted from the last one.
        blocks: Number of blocks of the model.

    Returns:
        Block numbers without duplicates. The output of the last block, after the final norm, is -1.

    Raises:
        InputError: If there are no layers, or if the model does not have a layer.
    """
    if not isinstance(layers, str):
        numbers = tuple(dict.fromkeys(-1 if layer == blocks else layer for layer in layers))
        for layer in numbers:
            if not -1 <= layer < blocks:
                raise InputError("layers", layer, f"the model has {blocks} blocks; use -1, or 0 to {blocks}")
        if not numbers:
            raise InputError("layers", (), "use at least one layer")
        return numbers
    step = 1 if layers == "all" else int(layers[6:]) if re.fullmatch(r"every:[1-9]\d{0,5}", layers) else 0
    if not step:
        raise InputError("layers", layers, "use block numbers, all, or every:N")
    return (*sorted(range(blocks - step, 0, -step)), -1)


def require_enough_texts(texts: Sequence[LabelledText], config: ProbeTrainingConfig) -> None:
    """Raise `InputError` if there are too few texts to train a verifier.

    Only the labels are needed, so this can be called before a model is loaded.

    Raises:
        InputError: If a split lacks correct or erroneous examples, or has too few for the threshold.
    """
    labels, text = [], []
    for index, labelled in enumerate(texts):
        if labelled.label is not None:
            text_labels = [labelled.label]
        else:
            correct = 0 if labelled.error == 0 else config.correct_prefixes
            text_labels = [1] * correct + [0] * (labelled.error is not None)
        labels += text_labels
        text += [index] * len(text_labels)
    examples = ProbeExamples(sequences=[], lengths=[], labels=torch.tensor(labels), text=torch.tensor(text))
    _split_and_check(texts, examples, config)


def _split_and_check(
    texts: Sequence[LabelledText], examples: ProbeExamples, config: ProbeTrainingConfig
) -> ExampleSplit:
    """Split the examples, and raise `InputError` if a part is too small."""
    split = split_examples(
        texts,
        examples,
        validation=config.validation,
        test=config.test,
        by=config.split_by,
        seed=config.seed,
    )
    if config.threshold is None:
        require_enough_correct(config.false_rejections, int(examples.labels[split.calibration].sum()))
    return split


def train_verifier(
    oracle: PretrainedOracle,
    data: LabelledTexts,
    config: ProbeTrainingConfig | None = None,
    *,
    name: str = "",
    progress: bool = False,
) -> ProbeFile:
    """Train a verifier of prefixes on the hidden states of a model.

    The texts are split into four parts. Probes are trained on the first part and compared on the second. The
    third calibrates the best probe and determines its threshold. The fourth gives the metrics.

    Args:
        oracle: Pretrained model.
        data: Labelled texts.
        config: Hyperparameters. The defaults of `ProbeTrainingConfig` by default.
        name: Name of the data, stored in the result.
        progress: Whether to show progress bars if standard error is a terminal.

    Raises:
        InputError: If `prefix_examples` or `split_examples` reject the texts, or if there are too few texts
            for the threshold. Also if the model does not have a layer, or if memory is insufficient.
    """
    config = ProbeTrainingConfig() if config is None else config
    layers = resolve_layers(config.layers, oracle.layers)
    examples = prefix_examples(
        data.texts,
        oracle.tokenization,
        max_length=oracle.max_length,
        correct_prefixes=config.correct_prefixes,
        chat=config.chat,
        eos=config.eos,
        seed=config.seed,
    )
    # The split is checked before hidden states are computed, which is expensive.
    split = _split_and_check(data.texts, examples, config)
    labels = examples.labels.numpy()
    states = _hidden_states(oracle, examples, layers, config.batch_size, progress)
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
    layer_states = states[:, layers.index(best.layer)]
    held_out = _log_odds(best.probe, layer_states[split.calibration])
    held_out_labels = labels[split.calibration.numpy()]
    calibration = fit_calibration(held_out, held_out_labels, config.calibration)
    probe = best.probe.rescaled(*calibration)
    threshold = _threshold(config, _probabilities(probe, layer_states[split.calibration]), held_out_labels)
    numbers = compute_verifier_metrics(
        _probabilities(probe, layer_states[split.test]),
        labels[split.test.numpy()],
        threshold,
        _probabilities(best.probe, layer_states[split.test]),
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
        parts=_split_sizes(examples, split),
        settings=asdict(config) | {"layers": list(layers), "depths": list(config.depths)},
    )


def _hidden_states(
    oracle: PretrainedOracle, examples: ProbeExamples, layers: Sequence[int], batch_size: int, progress: bool
) -> Tensor:
    """Return the hidden states (n, len(layers), width) of the examples."""
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
        if not is_out_of_memory(error):
            raise
        longest = max(map(len, examples.sequences))
        hint = f"out of memory with texts of up to {longest} tokens and {len(layers)} layers; "
        hint += f"use batch_size={max(1, batch_size // 2)} or fewer layers"
        raise InputError("batch_size", batch_size, hint) from error


def _log_odds(probe: Probe, states: Tensor) -> Floats:
    logits = probe(states).double()
    odds: Floats = (logits[:, 1] - logits[:, 0]).numpy()
    return odds


def _probabilities(probe: Probe, states: Tensor) -> Floats:
    # The verifier uses the same method, so that a prefix at the threshold is classified in the same way.
    probabilities: Floats = probe.probability(states).double().numpy()
    return probabilities


def _threshold(config: ProbeTrainingConfig, probabilities: Floats, labels: np.ndarray) -> float:
    if config.threshold is None:
        return rejection_threshold(probabilities, labels, config.false_rejections)
    return youden_threshold(probabilities, labels) if isinstance(config.threshold, str) else config.threshold


def _split_sizes(examples: ProbeExamples, split: ExampleSplit) -> dict[str, SplitSizes]:
    parts = {}
    for name, rows in split._asdict().items():
        correct = int(examples.labels[rows].sum())
        parts[name] = SplitSizes(len(examples.text[rows].unique()), correct, len(rows) - correct)
    return parts
