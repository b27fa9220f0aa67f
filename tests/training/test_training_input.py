"""Networks and their training: bad numbers are one line that names the field, its value and the hint."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from trialogue.errors import InputError
from trialogue.models import Cropped, Endless, MaskedTransformer, Transformer, TransformerConfig
from trialogue.models.probe import Probe, hidden_states
from trialogue.training.calibration import (
    expected_calibration_error,
    fit_calibration,
    rejection_threshold,
    verifier_numbers,
)
from trialogue.training.config import TrainingConfig
from trialogue.training.masking import (
    IndependentMasks,
    Replacement,
    UniformMasks,
    masked_batches,
    uniform_masks,
)
from trialogue.training.probe_training import ProbeTrainingConfig
from trialogue.training.probes import ProbeConfig, train_probe
from trialogue.training.pseudolikelihood import fit_pseudolikelihood

SHAPE = {"vocab_size": 2, "layers": 1, "heads": 1, "width": 4, "mlp_width": 4, "max_length": 4}
CAUSAL = Transformer(TransformerConfig(**SHAPE))
READER = Transformer(TransformerConfig(**SHAPE, causal=False))
LABELS = np.array([0, 1] * 20)
SHARES = np.linspace(0.1, 0.9, 40)
SPINS = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0]])


def recipe(**fields: object) -> TrainingConfig:
    return TrainingConfig(**{"steps": 2, "batch_size": 2} | fields)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: TransformerConfig(**SHAPE, causal="no"), "causal='no': use True or False"),
    (lambda: Transformer(None), "config=None: give a TransformerConfig"),
    (lambda: Cropped(None, 2), "base='NoneType': give an Autoregressive oracle"),
    (lambda: Endless(None), "base='NoneType': give an Autoregressive oracle"),
    (lambda: MaskedTransformer(None), "model='NoneType': give a Transformer"),
    (lambda: MaskedTransformer(READER).log_probs("ab", None), "tokens='ab': give token ids"),
    (lambda: MaskedTransformer(READER).log_probs(SPINS, None), "masked=None: give one bool for each token"),
    (lambda: Probe(4.0), "width=4.0: use a whole number"),
    (lambda: Probe(4, depth="2"), r"depth='2': use 1 \(linear\) or more layers"),
    (lambda: Probe(4, hidden=-1), "hidden=-1: use at least 1"),
    (lambda: Probe(4).rescaled(math.nan, 0.0), "slope=nan: use a finite number"),
    (lambda: hidden_states(CAUSAL, SPINS, torch.tensor([1] * 4), ["a"]), "layers='a': use a whole number"),
    (lambda: recipe(steps=1.5), "steps=1.5: use a whole number of at least 1"),
    (lambda: recipe(batch_size=True), "batch_size=True: use a whole number"),
    (lambda: recipe(warmup_steps=1.5), "warmup_steps=1.5: use a whole number"),
    (lambda: recipe(seed="8"), "seed='8': use a whole number"),
    (lambda: recipe(learning_rate="1"), "learning_rate='1': use a finite number above 0"),
    (lambda: recipe(weight_decay=None), "weight_decay=None: use a finite number of at least 0"),
    (lambda: recipe(beta_1="0.9"), r"beta_1='0.9': must be in \[0, 1\)"),
    (lambda: recipe(gradient_clip=True), "gradient_clip=True: use a finite number above 0"),
    (lambda: recipe(bf16="no"), "bf16='no': use True or False"),
    (lambda: uniform_masks(2, 3, 1.5, 0), "count=1.5: use a whole number from 0 to 3"),
    (lambda: uniform_masks(2, 3, 4, 0), "count=4: use at most 3"),
    (lambda: IndependentMasks("0.5"), r"rate='0.5': must be in \(0, 1\]"),
    (lambda: IndependentMasks(True), r"rate=True: must be in \(0, 1\]"),
    (lambda: Replacement("1"), "mask='1': use a probability"),
    (lambda: masked_batches("ab", READER, UniformMasks(1), batch_size=2), "sequences='ab': give a matrix"),
    (lambda: masked_batches(SPINS.float(), READER, UniformMasks(1), batch_size=2), "sequences=torch.float32"),
    (lambda: masked_batches(SPINS, READER, UniformMasks(1), batch_size=2, seed=0.5), "seed=0.5: use a whole"),
    (lambda: ProbeConfig(epochs=1.5), "epochs=1.5: use a whole number"),
    (lambda: ProbeConfig(hidden=-1), "hidden=-1: use at least 1"),
    (lambda: ProbeConfig(learning_rate=math.nan), "learning_rate=nan: use a finite number above 0"),
    (lambda: ProbeConfig(weight_decay=-1), "weight_decay=-1: use a finite number of at least 0"),
    (lambda: ProbeConfig(validation="0.5"), "validation='0.5': hold out a share between 0 and 1"),
    (lambda: ProbeConfig(seed=-1), "seed=-1: use at least 0"),
    (lambda: ProbeTrainingConfig(layers=0.5), "layers=0.5: use numbers of layers, all, or every:N"),
    (lambda: ProbeTrainingConfig(depths=0.5), "depths=0.5: name at least one"),
    (lambda: ProbeTrainingConfig(calibration="nope"), "calibration='nope': use one of platt"),
    (lambda: ProbeTrainingConfig(split_by="nope"), "split_by='nope': use text or prompt"),
    (lambda: ProbeTrainingConfig(validation=2), "validation=2: hold out a share"),
    (lambda: ProbeTrainingConfig(test="0.1"), "test='0.1': hold out a share"),
    (lambda: ProbeTrainingConfig(threshold=True), "threshold=True: use a probability"),
    (lambda: ProbeTrainingConfig(chat="no"), "chat='no': use True or False"),
    (lambda: train_probe(None, torch.zeros(3).long()), "states=None: give hidden states"),
    (lambda: train_probe(torch.zeros(3, 2), torch.zeros(2).long()), r"states=\(3, 2\): .*one label for each"),
    (lambda: fit_calibration("ab", LABELS), "log_odds='ab': give one finite number"),
    (lambda: fit_calibration(SHARES, None), "labels=None: give 0 or 1"),
    (lambda: rejection_threshold(SHARES, LABELS, "0.1"), "false_rejections='0.1': use a share"),
    (lambda: expected_calibration_error(SHARES, LABELS, bins=1.5), "bins=1.5: use a whole number"),
    (lambda: verifier_numbers(SHARES, LABELS, math.nan, SHARES), "threshold=nan: use a finite number"),
    (lambda: fit_pseudolikelihood("ab", 1), "samples='ab': give a matrix"),
    (lambda: fit_pseudolikelihood(SPINS, 1, ridge="1"), "ridge='1': use zero or a positive number"),
    (lambda: fit_pseudolikelihood(SPINS, 1, tolerance=None), "tolerance=None: use a positive number"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_bad_input_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as error:
        call()
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers() -> None:
    config = TransformerConfig(**{name: np.int64(value) for name, value in SHAPE.items()})
    assert config == TransformerConfig(**SHAPE)
    assert type(config.width) is int
    assert recipe(steps=np.int64(3), learning_rate=np.float32(0.5)).steps == 3
