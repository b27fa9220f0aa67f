"""The values of complete sequences that a graded verifier remembers."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from trialogue.generation import values
from trialogue.generation.values import Graded
from trialogue.verifiers import FunctionVerifier


def judged(graded: Graded, first: int, number: int) -> None:
    """Ask about complete sequences of one token each, `number` of them at once."""
    decoding: Any = SimpleNamespace(
        tokens=torch.arange(first, first + number)[:, None],
        lengths=torch.ones(number, dtype=torch.int64),
        start=torch.zeros(number, dtype=torch.int64),
        complete=torch.ones(number, dtype=torch.bool),
        eos=None,
    )
    graded.values(decoding, torch.arange(number))


def told(graded: Graded, *tokens: int) -> list[float | None]:
    number = len(tokens)
    samples: Any = SimpleNamespace(
        tokens=torch.tensor(tokens)[:, None],
        lengths=torch.ones(number, dtype=torch.int64),
        prompt_lengths=torch.zeros(number, dtype=torch.int64),
    )
    return graded.final(samples)


def test_the_latest_values_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_REMEMBERED", 8)
    graded = Graded(FunctionVerifier(lambda prefix: float(prefix[0])))
    for first in range(0, 100, 2):
        judged(graded, first, 2)
        assert len(graded._values) <= 8
        assert told(graded, first, first + 1) == [first, first + 1]
    assert told(graded, 0, 91, 92, 99) == [None, None, 92.0, 99.0]
    # What is asked about anew is the latest.
    judged(graded, 92, 1)
    judged(graded, 200, 7)
    assert told(graded, 92, 99, 206) == [92.0, 99.0, 206.0]
