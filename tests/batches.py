"""Batches that contain given prefixes, and a verifier that returns the values of all children at once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.oracles import pad_sequences
from trialogue.samplers.prefix.batch import Batch
from trialogue.verifiers import FunctionVerifier

Prefix = tuple[int, ...]


def batch_of(
    oracle: Any, prefixes: Sequence[Prefix], capacity: int, start: int | Sequence[int] = 0, **settings: Any
) -> Batch:
    """Return a batch of `prefixes` in rows of `capacity` tokens, whose first `start` tokens are the prompt."""
    tokens, lengths = pad_sequences(prefixes, capacity)
    batch = Batch(oracle, len(prefixes), capacity, **settings)
    starts = torch.tensor(start).expand_as(lengths)
    batch.add(tokens, lengths, starts, torch.full_like(lengths, capacity))
    return batch


def prefixes_of(decoding: Any, rows: Tensor) -> list[Prefix]:
    """Return the prefixes of the given rows of a batch."""
    return [tuple(decoding.tokens[row, : int(decoding.lengths[row])].tolist()) for row in rows.tolist()]


class AllChildrenVerifier(FunctionVerifier):
    """A function of prefixes that is evaluated for all children of a prefix at once."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.function = function

    def children(self, decoding: Any, rows: Tensor) -> Tensor:
        tokens = range(decoding.vocab_size)
        prefixes = prefixes_of(decoding, rows)
        values = [[float(self.function((*prefix, token))) for token in tokens] for prefix in prefixes]
        return torch.tensor(values, dtype=torch.float64)
