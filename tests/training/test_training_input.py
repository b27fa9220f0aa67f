"""Test that invalid configs and arguments raise one-line errors with the field and its value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from trialogue.errors import InputError
from trialogue.models import Cropped, MaskedTransformer, Transformer, TransformerConfig
from trialogue.models.networks.attention_only import AttentionOnlyConfig
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.training import (
    CyclicMasks,
    IndividualMasks,
    Replacement,
    TrainingConfig,
    masked_batches,
    masked_token_loss,
    next_token_loss,
    packed_token_loss,
)
from trialogue.training.masking import uniform_masks
from trialogue.training.probes.calibration import (
    fit_calibration,
)
from trialogue.training.probes.grid import train_probe

SHAPE = {"vocab_size": 2, "layers": 1, "heads": 2, "width": 4, "mlp_width": 4, "max_length": 4}
CAUSAL = Transformer(TransformerConfig(**SHAPE))
READER = Transformer(TransformerConfig(**SHAPE, causal=False))
FACTORED = {"vocab_size": 3, "sites": 4}
ATTENTION = {"vocab_size": 4, "context": 2, "width": 3, "heads": 2, "head_width": 2}
STEPS = {"steps": 2, "batch_size": 2}
LABELS = np.array([0, 1] * 20)
SHARES = np.linspace(0.1, 0.9, 40)
SPINS = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 0]])

CONTRADICTORY: list[tuple[type[Any], dict[str, Any], dict[str, Any]]] = [
    (TransformerConfig, SHAPE, {"width": 5}),
    (TransformerConfig, {"vocab_size": 3, "causal": False}, {"attention_window": 4}),
    (TransformerConfig, {"vocab_size": 3, "heads": 1, "positions": "linear"}, {"width": 1}),
    (AttentionOnlyConfig, ATTENTION, {"head_width": 4, "query_width": 4}),
    (FactoredAttentionConfig, FACTORED, {"rank": 4}),
    (TrainingConfig, STEPS, {"momentum": 0.9}),
    (Replacement, {"mask": 0.8}, {"random": 0.3}),
]
"""Classes, fields that they accept, and values that contradict these fields."""


@pytest.mark.parametrize(("config", "accepted", "wrong"), CONTRADICTORY)
def test_a_field_that_contradicts_another_is_reported(
    config: type[Any], accepted: dict[str, Any], wrong: dict[str, Any]
) -> None:
    for field, value in wrong.items():
        with pytest.raises(InputError, match=f"^{field}=") as error:
            pytest.fail(f"accepted: {config(**accepted | {field: value})}")
        assert "\n" not in str(error.value)


def draws(
    sequences: Any = SPINS, model: Any = READER, distribution: Any = None, batch_size: int = 2
) -> object:
    return masked_batches(sequences, model, distribution or CyclicMasks(), batch_size=batch_size)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: Cropped(None, 2), "base='NoneType': give an object with vocab_size"),
    (lambda: MaskedTransformer(READER).log_probs("ab", None), "tokens='ab': give token ids"),
    (lambda: MaskedTransformer(READER).log_probs(SPINS, None), "masked=None: give one bool for each token"),
    (lambda: uniform_masks(2, 3, 4, 0), "count=4: there are 3 tokens: use at most 3"),
    (lambda: draws(SPINS + 1), "sequences=2: use token ids from 0 to 1"),
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
    (lambda: train_probe(None, torch.zeros(3).long()), "states=None: use hidden states"),
    (lambda: train_probe(torch.zeros(3, 2), torch.zeros(2).long()), r"states=\(3, 2\): .*one label for each"),
    (lambda: fit_calibration(SHARES, None), "labels=None: give 0 or 1"),
]


def test_invalid_input_is_rejected_in_one_line() -> None:
    for call, message in CALLS:
        with pytest.raises(InputError, match=f"^{message}") as error:
            pytest.fail(f"accepted: {call()}, expected {message}")
        assert "\n" not in str(error.value)


def test_numpy_numbers_are_accepted() -> None:
    config = TransformerConfig(**{name: np.int64(value) for name, value in SHAPE.items()})
    assert config == TransformerConfig(**SHAPE)
    assert type(config.width) is int
    assert TrainingConfig(steps=np.int64(3), batch_size=2, learning_rate=np.float32(0.5)).steps == 3
