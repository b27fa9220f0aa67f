"""The cache of a graded verifier for values of complete sequences."""

from types import SimpleNamespace
from typing import Any

import torch

from trialogue.generation.verifiers import graded as values
from trialogue.generation.verifiers.graded import Graded
from trialogue.verifiers import FunctionVerifier


def judge(graded: Graded, first: int, number: int) -> None:
    """Compute the values of `number` complete sequences of one token each."""
    decoding: Any = SimpleNamespace(
        tokens=torch.arange(first, first + number)[:, None],
        lengths=torch.ones(number, dtype=torch.int64),
        start=torch.zeros(number, dtype=torch.int64),
        complete=torch.ones(number, dtype=torch.bool),
        eos=None,
    )
    graded.values(decoding, torch.arange(number))


def cached_values(graded: Graded, *tokens: int) -> list[float | None]:
    number = len(tokens)
    samples: Any = SimpleNamespace(
        tokens=torch.tensor(tokens)[:, None],
        lengths=torch.ones(number, dtype=torch.int64),
        prompt_lengths=torch.zeros(number, dtype=torch.int64),
    )
    return graded.final(samples)


def test_only_the_latest_values_are_cached(monkeypatch):
    monkeypatch.setattr(values, "_REMEMBERED", 8)
    graded = Graded(FunctionVerifier(lambda prefix: float(prefix[0])))
    for first in range(0, 100, 2):
        judge(graded, first, 2)
        assert len(graded._values) <= 8
        assert cached_values(graded, first, first + 1) == [first, first + 1]
    assert cached_values(graded, 0, 91, 92, 99) == [None, None, 92.0, 99.0]
    # A value that is computed again becomes the latest.
    judge(graded, 92, 1)
    judge(graded, 200, 7)
    assert cached_values(graded, 92, 99, 206) == [92.0, 99.0, 206.0]
