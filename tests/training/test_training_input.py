"""Test that invalid configs and arguments raise one-line errors with the field and its value."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from trialogue.errors import InputError
from trialogue.models import Cropped, MaskedTransformer, Transformer, TransformerConfig
from trialogue.models.networks.attention_only import AttentionOnlyConfig
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.networks.probe import Probe
from trialogue.training import (
    AnyCount,
    CyclicMasks,
    IndependentMasks,
    IndividualMasks,
    Replacement,
    TrainingConfig,
    UniformMasks,
    log_steps,
    masked_batches,
    masked_token_loss,
    next_token_loss,
    packed_token_loss,
)
from trialogue.training.masking import uniform_masks
from trialogue.training.probes.calibration import fit_calibration, rejection_threshold
from trialogue.training.probes.grid import ProbeConfig, train_probe
from trialogue.training.probes.probe_training import ProbeTrainingConfig

SHAPE = {"vocab_size": 2, "layers": 1, "heads": 2, "width": 4, "mlp_width": 4, "max_length": 4}
CAUSAL = Transformer(TransformerConfig(**SHAPE))
READER = Transformer(TransformerConfig(**SHAPE, causal=False))
FACTORED = {"vocab_size": 3, "sites": 4}
ATTENTION = {"vocab_size": 4, "context": 2, "width": 3, "heads": 2, "head_width": 2}
STEPS = {"steps": 2, "batch_size": 2}
LABELS = np.array([0, 1] * 20)
SHARES = np.linspace(0.1, 0.9, 40)
SPINS = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0]])

WRONG: list[tuple[type[Any], dict[str, Any], dict[str, list[Any]]]] = [
    (TransformerConfig, SHAPE, {
        "vocab_size": [0], "layers": [0, True], "width": [0, 5], "mlp_width": [-1], "max_length": [1.5],
        "positions": ["rotary"], "causal": ["no"], "attention_window": [0, 1.5]}),
    (TransformerConfig, {"vocab_size": 3, "causal": False}, {"attention_window": [4]}),
    (TransformerConfig, {"vocab_size": 3, "heads": 1, "positions": "linear"}, {"width": [1]}),
    (AttentionOnlyConfig, ATTENTION, {
        "head_width": [0, 4], "query_width": [4], "layers": [0], "mlp_width": [-1], "shared": [1]}),
    (FactoredAttentionConfig, FACTORED, {"layers": [0], "rank": [4], "initial_scale": [0.0]}),
    (TrainingConfig, STEPS, {
        "steps": [0, 1.5], "batch_size": [0, True], "optimizer": ["lion"], "momentum": [0.9],
        "learning_rate": [0.0, math.nan, "1"], "weight_decay": [-1.0, None], "beta_1": ["0.9"], "seed": ["8"],
        "warmup_steps": [-1, 1.5], "schedule": ["step"], "gradient_clip": [0.0, True], "ema": ["mean"],
        "ema_decay": [1.0], "bf16": ["no"], "log_every": [0]}),
    (TrainingConfig, STEPS | {"optimizer": "sgd"}, {"momentum": [1.0]}),
    (IndependentMasks, {}, {"rate": [0, "0.5", True]}),
    (IndividualMasks, {}, {"rate": [1.5]}),
    (UniformMasks, {}, {"count": [0]}),
    (Replacement, {}, {"mask": ["1", -0.1]}),
    (Replacement, {"mask": 0.8}, {"random": [0.3]}),
    (ProbeConfig, {}, {
        "epochs": [1.5], "hidden": [-1], "learning_rate": [math.nan], "weight_decay": [-1], "seed": [-1],
        "validation": [0, "0.5"]}),
    (ProbeTrainingConfig, {}, {
        "layers": [0.5], "depths": [0.5, (0,), ()], "calibration": ["isotonic"], "split_by": ["token"], "epochs": [0],
        "validation": [2], "test": ["0.1"], "threshold": [True, 1.5, "much"], "chat": ["no"], "batch_size": [0],
        "false_rejections": [0.0]}),
]  # fmt: skip
"""Classes, fields that they accept, and values of one more field that they reject."""


@pytest.mark.parametrize(("config", "fields", "wrong"), WRONG)
def test_invalid_field_is_rejected(config, fields, wrong):
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(InputError, match=f"^{field}=") as error:
                pytest.fail(f"accepted: {config(**fields | {field: value})}")
            assert "\n" not in str(error.value)


def draws(
    sequences: Any = SPINS, model: Any = READER, distribution: Any = None, batch_size: int = 2
) -> object:
    return masked_batches(sequences, model, distribution or CyclicMasks(), batch_size=batch_size)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: Transformer(None), "config=None: give an instance of TransformerConfig"),
    (lambda: Cropped(None, 2), "base='NoneType': give an object with vocab_size"),
    (lambda: MaskedTransformer(READER).log_probs("ab", None), "tokens='ab': give token ids"),
    (lambda: MaskedTransformer(READER).log_probs(SPINS, None), "masked=None: give one bool for each token"),
    (lambda: Probe(4).rescaled(math.nan, 0.0), "slope=nan: use a finite number"),
    (lambda: uniform_masks(2, 3, 4, 0), "count=4: there are 3 tokens: use at most 3"),
    (lambda: AnyCount(2).masks(1, 2, 0, 0), "prompt=2: there are 2 tokens: use at most 1"),
    (lambda: draws(SPINS + 1), "sequences=2: use token ids from 0 to 1"),
    (lambda: draws(SPINS[:0]), r"sequences=\(0, 2\)"),
    (lambda: draws(model=CAUSAL), "causal=True: a causal model has no mask token"),
    (lambda: draws(distribution=IndividualMasks(1.0), batch_size=3), "batch_size=3: .* use a multiple of 2"),
    (
        lambda: masked_token_loss(
            FactoredAttention(FactoredAttentionConfig(**FACTORED)), SPINS, SPINS, SPINS > 0
        ),
        r"tokens=\(4, 2\): the network reads sequences of 4 tokens",
    ),
    (lambda: next_token_loss(CAUSAL, SPINS.int()), "tokens=torch.int32: give a tensor of dtype torch.int64"),
    (lambda: packed_token_loss(CAUSAL, SPINS[:0]), r"tokens=\(0, 2\): give a matrix"),
    (lambda: packed_token_loss(CAUSAL, SPINS[:, :0]), r"tokens=\(4, 0\): give rows of at least one token"),
    (lambda: packed_token_loss(CAUSAL, SPINS + 1), "tokens=2: use token ids from 0 to 1"),
    (lambda: log_steps(0, 1), "last=0: use at least 1"),
    (lambda: train_probe(None, torch.zeros(3).long()), "states=None: use hidden states"),
    (lambda: train_probe(torch.zeros(3, 2), torch.zeros(2).long()), r"states=\(3, 2\): .*one label for each"),
    (lambda: fit_calibration(SHARES, None), "labels=None: give 0 or 1"),
    (lambda: rejection_threshold(SHARES, LABELS, 1.0), "false_rejections=1.0: use a number below 1"),
]


def test_invalid_input_is_rejected_in_one_line():
    for call, message in CALLS:
        with pytest.raises(InputError, match=f"^{message}") as error:
            pytest.fail(f"accepted: {call()}, expected {message}")
        assert "\n" not in str(error.value)


def test_numpy_numbers_are_accepted():
    config = TransformerConfig(**{name: np.int64(value) for name, value in SHAPE.items()})
    assert config == TransformerConfig(**SHAPE)
    assert type(config.width) is int
    assert TrainingConfig(steps=np.int64(3), batch_size=2, learning_rate=np.float32(0.5)).steps == 3
