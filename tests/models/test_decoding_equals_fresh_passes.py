"""The engine's batch on a transformer: after any rewinds and copies it answers as a fresh pass does."""

from typing import Any

import pytest
import torch
from torch import Tensor

from models.ragged_schedule import largest_error
from models.random_transformer import small
from trialogue.models import Transformer
from trialogue.samplers.prefix.batch import Batch

MODEL = small(5, width=32, mlp_width=64, max_length=13)


def fresh(model: Transformer, tokens: Tensor) -> Tensor:
    return model(torch.cat((torch.tensor([model.bos]), tokens))[None])[0, -1].log_softmax(-1)


def other_prefixes(batch: Batch) -> None:
    batch._evaluations.evaluated[:, 1:3] = batch._rows.path[:1, 1:3]


SETTINGS: dict[str, Any] = {"alphabet": range(3), "shortest": 0, "fresh": fresh}


@pytest.mark.parametrize("memory", [1, 7, 4096])
def test_answers_are_those_of_fresh_passes(memory: int) -> None:
    with torch.inference_mode():
        errors = [largest_error(MODEL, seed, memory, **SETTINGS) for seed in range(25)]
    assert max(error for error, _ in errors) < 1e-4


def test_keys_of_other_prefixes_are_told_apart() -> None:
    with torch.inference_mode():
        errors = [largest_error(MODEL, seed, 1, **SETTINGS, spoil=other_prefixes) for seed in range(8)]
    assert max(error for error, _ in errors) > 1e-2
