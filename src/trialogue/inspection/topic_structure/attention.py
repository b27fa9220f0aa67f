"""Attention between the words of passages, summed pair by pair and filed as it is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.topic_structure.words import Placed
from trialogue.models.hub.attention_weights import AttendingModel
from trialogue.oracles import padded
from trialogue.tensor_files import read_tensors, write_tensors

SCALE = 100
"""Debiased attention is of texts of so many tokens."""
_KIND = "trialogue attention sums 1"
_AT_ONCE = 8
_SECONDS = 15.0
"""So much work may be lost to a kill."""
_TOLD = 2.0


class AttentionSums(NamedTuple):
    """Attention between different words of passages, a row for each pair of words in a passage, (rows,) each.

    The words of a pair are in order of their numbers; both directions are summed, over all places where both stand.
    """

    passage: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    places: NDArray[np.float64]
    """how many pairs of places, a query and a key that it sees each"""
    raw: NDArray[np.float64]
    """sum of attention weights"""
    debiased: NDArray[np.float64]
    """sum of attention weights times the number of keys that the query sees, over `SCALE`"""


def attention_sums(
    model: AttendingModel,
    passages: Sequence[Placed],
    names: Sequence[str],
    *,
    path: Path | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> AttentionSums:
    """How `model` attends between the words of `passages` that are among `names`, by their numbers there.

    A word's mean attention to another is in inverse proportion to the number of words that there are to attend to:
    debiased, the mean over all keys of a query is 1 / `SCALE`, in a text of any length, and from any place of it for a
    model that looks back only. The first token of a text is left out, where it is a word: models that look back rest
    their attention on it, whatever it is (Xiao et al. 2023). What is measured is filed under `path`, and taken from
    there where a run was cut short; the path names what it is of. `report` is told of progress. Raises `InputError` for
    a damaged file.
    """
    number = {name: index for index, name in enumerate(names)}
    parts, done = _filed(path)
    begun = told = time.monotonic()
    while done < len(passages):
        some = passages[done : done + _AT_ONCE]
        tokens, lengths = padded([passage.ids for passage in some])
        weights = model.attention(tokens, lengths)
        for row, passage in enumerate(some):
            parts.append(_pairs(done + row, passage, weights[row, : lengths[row], : lengths[row]], number))
        done += len(some)
        if done == len(passages) or time.monotonic() - told > _TOLD:
            told = time.monotonic()
            report(f"attention of {model.name}: {done} of {len(passages)} passages")
        if path is not None and (done == len(passages) or time.monotonic() - begun > _SECONDS):
            parts = [_joined(parts)]
            write_tensors(path, _KIND, {"pairs": torch.from_numpy(parts[0])}, {"passages": done})
            begun = time.monotonic()
    table = _joined(parts)
    whole = table[:3].astype(np.int64)
    return AttentionSums(whole[0], whole[1], whole[2], *table[3:])


def _filed(path: Path | None) -> tuple[list[NDArray[np.float64]], int]:
    """What is filed, and of how many passages it is."""
    if path is None or not path.exists():
        return [], 0
    tensors, told = read_tensors(path, _KIND, "delete it to measure anew")
    return [tensors["pairs"].numpy()], int(told["passages"])


def _pairs(passage: int, placed: Placed, weights: Tensor, number: Mapping[str, int]) -> NDArray[np.float64]:
    """The columns of `AttentionSums` (6, pairs) for one passage, of attention (N, N)."""
    held = [
        (number[word], place)
        for word, place in zip(placed.words, placed.places, strict=True)
        if word in number and place > 0
    ]
    if not held:
        return np.empty((6, 0))
    words, places = (torch.tensor(column) for column in zip(*held, strict=True))
    seen = weights > 0
    keys = seen.sum(1, keepdim=True)
    among = seen[places][:, places] & (words[:, None] != words)
    query, key = among.nonzero(as_tuple=True)
    raw = weights[places][:, places][among].double().numpy()
    debiased = (weights * keys / SCALE)[places][:, places][among].double().numpy()
    ends = torch.stack((words[query], words[key])).sort(0).values.numpy()
    pairs, place = np.unique(ends, axis=1, return_inverse=True)
    sums = [
        np.bincount(place.ravel(), column, pairs.shape[1]) for column in (np.ones_like(raw), raw, debiased)
    ]
    return np.stack([np.full(pairs.shape[1], passage), *pairs, *sums]).astype(np.float64)


def _joined(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.concatenate([np.empty((6, 0)), *parts], axis=1))
