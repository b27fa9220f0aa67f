"""Sums of the attention between pairs of words over many passages. Interrupted computations are resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.topic_structure.words import TokenizedPassage
from trialogue.models.hub.attention_weights import AttentionModel
from trialogue.oracles import pad_sequences
from trialogue.tensor_files import read_tensors, write_tensors

SCALE = 100
"""Number of tokens of the texts to which debiased attention is normalized."""
_KIND = "trialogue attention sums 1"
_BATCH_SIZE = 8
_SAVE_SECONDS = 15.0
"""Seconds between writes of the file, which bounds the work lost when the process is killed."""
_REPORT_SECONDS = 2.0


class AttentionSums(NamedTuple):
    """Attention of a model between pairs of different words, summed within each passage.

    All arrays have shape (rows,), with one row per passage and pair of words that occur in it. Sums are over
    both directions (first word as query or as key) and over all occurrences of both words.

    Attributes:
        passage: Index of the passage.
        first: Index of the first word of the pair. It is lower than `second`.
        second: Index of the second word of the pair.
        places: Number of summed pairs of a query position and a key position. Keys that are not visible to the
            query are left out.
        raw: Sum of the attention weights.
        debiased: Sum of the attention weights times the number of keys that are visible to the query, divided
            by `SCALE`.
    """

    passage: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    places: NDArray[np.float64]
    raw: NDArray[np.float64]
    debiased: NDArray[np.float64]


def attention_sums(
    model: AttentionModel,
    passages: Sequence[TokenizedPassage],
    names: Sequence[str],
    *,
    path: Path | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> AttentionSums:
    """Sum the attention weights of a model between words of passages.

    The mean attention weight decreases with the number of visible keys. Debiased attention corrects for this.
    Its mean over the keys of a query is 1 / `SCALE` for any length of text and any position of the query. The
    first token of a text is excluded because causal models attend to it irrespective of its meaning.

    Args:
        model: Model that returns attention weights.
        passages: Tokenized passages.
        names: Words to include. Their indices identify the words in the result.
        path: File for intermediate results. If it exists, the computation resumes from it. Use a different file
            for each combination of the other arguments.
        report: Called with progress messages.

    Returns:
        Attention between all pairs of different words that occur in the same passage.

    Raises:
        InputError: If the file is damaged.

    References:
        Xiao et al. (2023), on the attention of causal models to the first token.
    """
    number = {name: index for index, name in enumerate(names)}
    tables, done = _read_stored(path)
    saved = reported = time.monotonic()
    while done < len(passages):
        batch = passages[done : done + _BATCH_SIZE]
        tokens, lengths = pad_sequences([passage.ids for passage in batch])
        weights = model.attention(tokens, lengths)
        for row, passage in enumerate(batch):
            tables.append(
                _pair_sums(done + row, passage, weights[row, : lengths[row], : lengths[row]], number)
            )
        done += len(batch)
        if done == len(passages) or time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            report(f"attention of {model.name}: {done} of {len(passages)} passages")
        if path is not None and (done == len(passages) or time.monotonic() - saved > _SAVE_SECONDS):
            tables = [_concatenate(tables)]
            write_tensors(path, _KIND, {"pairs": torch.from_numpy(tables[0])}, {"passages": done})
            saved = time.monotonic()
    table = _concatenate(tables)
    passage_ids, first, second = table[:3].astype(np.int64)
    return AttentionSums(passage_ids, first, second, *table[3:])


def _read_stored(path: Path | None) -> tuple[list[NDArray[np.float64]], int]:
    """Return the stored table, if any, and its number of passages."""
    if path is None or not path.exists():
        return [], 0
    tensors, metadata = read_tensors(path, _KIND, "delete the file and run the command again")
    return [tensors["pairs"].numpy()], int(metadata["passages"])


def _pair_sums(
    index: int, passage: TokenizedPassage, weights: Tensor, number: Mapping[str, int]
) -> NDArray[np.float64]:
    """Return the columns of `AttentionSums` (6, pairs) for one passage with attention weights (L, L)."""
    included = [
        (number[word], place)
        for word, place in zip(passage.words, passage.places, strict=True)
        if word in number and place > 0
    ]
    if not included:
        return np.empty((6, 0))
    words, places = (torch.tensor(column) for column in zip(*included, strict=True))
    visible = weights > 0
    keys = visible.sum(1, keepdim=True)
    different = visible[places][:, places] & (words[:, None] != words)
    query, key = different.nonzero(as_tuple=True)
    raw = weights[places][:, places][different].double().numpy()
    debiased = (weights * keys / SCALE)[places][:, places][different].double().numpy()
    ends = torch.stack((words[query], words[key])).sort(0).values.numpy()
    pairs, inverse = np.unique(ends, axis=1, return_inverse=True)
    sums = [
        np.bincount(inverse.ravel(), column, pairs.shape[1]) for column in (np.ones_like(raw), raw, debiased)
    ]
    return np.stack([np.full(pairs.shape[1], index), *pairs, *sums]).astype(np.float64)


def _concatenate(tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.ascontiguousarray(np.concatenate([np.empty((6, 0)), *tables], axis=1))
