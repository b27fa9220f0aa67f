"""Counts of the tokens that follow every context of S tokens in a text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import integer_tensor
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, NonNegative, validated

_MOST_NUMBERS = 1 << 28


class NgramDistributions(NamedTuple):
    """Counts of the next token after the most frequent contexts of a text, in decreasing order of frequency.

    A context is a sequence of S tokens.

    Attributes:
        contexts: Contexts (T, S) int64.
        counts: Counts (T, N) float64 of each next token.
        occurrences: Number of text positions with a complete context, including omitted contexts.
        different: Number of distinct contexts in the text.
    """

    contexts: Tensor
    counts: Tensor
    occurrences: int
    different: int

    @property
    def prior(self) -> Tensor:
        """Probability (T,) float64 of each context, relative to all listed contexts."""
        return self.counts.sum(1) / self.counts.sum()

    @property
    def share(self) -> float:
        """Share of the text positions whose context is listed."""
        return float(self.counts.sum()) / self.occurrences

    @validated
    def log_probs(self, smoothing: NonNegative = 0.0) -> Tensor:
        """Return the next-token log-probabilities (T, N) float64 after each context.

        Args:
            smoothing: Value added to every count.
        """
        smoothed = self.counts + smoothing
        return (smoothed / smoothed.sum(1, keepdim=True)).log()


@validated
def ngram_distributions(
    tokens: Tensor, context: Natural, vocab_size: Count, most: Count | None = None
) -> NgramDistributions:
    """Count the next tokens after the most frequent contexts of a text.

    A context is a sequence of S tokens. Equally frequent contexts are in token order. With S = 0, the result is the
    unigram distribution.

    Args:
        tokens: Text (n,), or rows (rows, n) whose boundaries no context crosses.
        context: Number S of tokens in a context.
        vocab_size: Number N of tokens of the vocabulary.
        most: Largest number of contexts (default: all).

    Raises:
        InputError: If the text is too short, contains other tokens, or the table would be too large.
    """
    length, size = context, vocab_size
    text = np.atleast_2d(integer_tensor("tokens", tokens, "give token ids (n,), or (rows, n)").numpy())
    places = text.shape[-1] - length
    if text.ndim != 2 or not len(text) or places < 1:
        raise InputError("context", context, f"the text has {text.shape[-1]} tokens: use a shorter context")
    if not 0 <= int(text.min()) <= int(text.max()) < size:
        raise InputError("tokens", int(text[(text < 0) | (text >= size)][0]), f"tokens are 0 to {size - 1}")
    # Contexts are numbered token by token, because V^S may not fit into an integer.
    number = np.zeros(len(text) * places, dtype=np.int64)
    for place in range(length):
        number = number * size + text[:, place : place + places].ravel()
        number = np.unique(number, return_inverse=True)[1].astype(np.int64)
    _, first, times = np.unique(number, return_index=True, return_counts=True)
    wanted = len(times) if most is None else min(most, len(times))
    if wanted * size > _MOST_NUMBERS:
        hint = f"a table of {wanted} contexts and {size} tokens is too large: use at most {_MOST_NUMBERS // size}"
        raise InputError("most", most, hint)
    order = np.argsort(-times, kind="stable")[:wanted]
    rank = np.full(len(times), wanted)
    rank[order] = np.arange(wanted)
    kept = rank[number] < wanted
    cells = rank[number[kept]] * size + text[:, length:].ravel()[kept]
    counts = np.bincount(cells, minlength=wanted * size).reshape(wanted, size).astype(np.float64)
    row, column = (place[:, None] for place in np.divmod(first[order], places))
    contexts = text[row, column + np.arange(length)]
    return NgramDistributions(torch.from_numpy(contexts), torch.from_numpy(counts), len(number), len(times))
