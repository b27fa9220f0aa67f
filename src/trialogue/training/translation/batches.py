"""Batches of parallel text whose rows are about equally long."""

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
"""Rows of a batch are filled up to a multiple of it: batches have few shapes."""


@validated
@dataclass(frozen=True, eq=False)
class TranslationBatches:
    """Batches (sources, targets) of encoded pairs, a function of the step: the `data` of a `Recipe`.

    `sources` (pairs, S) and `targets` (pairs, T) int64 end with EOS and are filled up with PAD. In every epoch each
    pair is in at most one batch, beside pairs whose targets and sources are about as long. Raises `InputError` for
    sizes that do not go together.
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
            hint = f"there are {len(self.sources)} pairs: use at most as many"
            raise InputError("batch_size", self.batch_size, hint)

    @property
    def epoch(self) -> int:
        """Steps of one epoch."""
        return len(self.sources) // self.batch_size

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        """The batch (sources, targets) of step 0, 1, ..., each (batch_size, ...), cut to its longest row."""
        epoch, place = divmod(step, self.epoch)
        rows = _order(self, epoch)[place]
        return shortened(self.sources[rows]), shortened(self.targets[rows])


def shortened(tokens: Tensor) -> Tensor:
    """`tokens` (n, T) without columns that only fill up, to a multiple of two where there are as many."""
    longest = int((tokens != PAD).sum(1).max())
    return tokens[:, : -(-longest // _MULTIPLE) * _MULTIPLE]


@lru_cache(maxsize=4)
def _order(batches: TranslationBatches, epoch: int) -> Tensor:
    """The rows (steps, batch_size) of the batches of an epoch."""
    drawn = generator(batches.seed, "translation batches", epoch)
    pairs = len(batches.sources)
    shuffled = torch.randperm(pairs, generator=drawn)
    lengths = [(tokens != PAD).sum(1) for tokens in (batches.targets, batches.sources)]
    key = lengths[0] * (batches.sources.shape[1] + 1) + lengths[1]
    # Which pairs are left out, and where one batch ends, differ from epoch to epoch.
    kept = shuffled[: batches.epoch * batches.batch_size]
    rows = kept[key[kept].argsort(stable=True)].view(batches.epoch, batches.batch_size)
    return rows[torch.randperm(batches.epoch, generator=drawn)]
