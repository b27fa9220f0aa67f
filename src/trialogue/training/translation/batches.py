"""Batches of parallel text with rows of similar length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from trialogue.data.parallel.vocabulary import PAD
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.validation import Count, Natural, validated

_MULTIPLE = 2
"""Rows are padded to a multiple of this length, so that batches have few shapes."""


@validated
@dataclass(frozen=True, eq=False)
class TranslationBatches:
    """Batches of encoded sentence pairs, as a function of the training step.

    It can be the `data` of a `Recipe`. Each pair is in at most one batch per epoch, together with pairs of similar
    length.

    Args:
        sources: Source tokens with EOS and padded with PAD, (pairs, S) int64.
        targets: Target tokens in the same format, (pairs, T) int64.
        batch_size: Pairs per batch.
        seed: Seed for the order of the batches.

    Raises:
        InputError: If there are different numbers of sources and targets, or fewer than `batch_size` pairs.
    """

    sources: Tensor
    targets: Tensor
    batch_size: Count
    seed: Natural = 0

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            counts = f"{len(self.sources)} sources and {len(self.targets)} targets"
            raise InputError("targets", counts, "give one target for each source")
        if self.batch_size > len(self.sources):
            hint = f"use at most {len(self.sources)}, the number of pairs"
            raise InputError("batch_size", self.batch_size, hint)

    @property
    def epoch(self) -> int:
        """Number of steps per epoch."""
        return len(self.sources) // self.batch_size

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        """Return the sources and targets of a batch, each (batch_size, length), trimmed to the longest row."""
        epoch, place = divmod(step, self.epoch)
        rows = _order(self, epoch)[place]
        return trim_padding(self.sources[rows]), trim_padding(self.targets[rows])


def trim_padding(tokens: Tensor) -> Tensor:
    """Remove the padding columns of `tokens` (n, T), except one if needed for an even length."""
    longest = int((tokens != PAD).sum(1).max())
    return tokens[:, : -(-longest // _MULTIPLE) * _MULTIPLE]


@lru_cache(maxsize=4)
def _order(batches: TranslationBatches, epoch: int) -> Tensor:
    """Return the indices of the pairs in each batch of an epoch, (steps, batch_size)."""
    random = generator(batches.seed, "translation batches", epoch)
    pairs = len(batches.sources)
    shuffled = torch.randperm(pairs, generator=random)
    lengths = [(tokens != PAD).sum(1) for tokens in (batches.targets, batches.sources)]
    key = lengths[0] * (batches.sources.shape[1] + 1) + lengths[1]
    # Each epoch omits different pairs and has different batch boundaries.
    used = shuffled[: batches.epoch * batches.batch_size]
    rows = used[key[used].argsort(stable=True)].view(batches.epoch, batches.batch_size)
    return rows[torch.randperm(batches.epoch, generator=random)]
