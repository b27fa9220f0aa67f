"""What follows what in a text: the counts of the tokens after every context of S tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import whole_tensor
from trialogue.errors import InputError
from trialogue.validation import Count, Natural, NonNegative, validated

_MOST_NUMBERS = 1 << 28


class NgramDistributions(NamedTuple):
    """The contexts of a text that come most often, the likeliest first, and what follows each."""

    contexts: Tensor
    """(T, S) int64"""
    counts: Tensor
    """(T, N) float64: how often each token follows"""
    occurrences: int
    """how many places of the text have a whole context before them: those of contexts left out among them"""
    different: int
    """how many contexts there are in all"""

    @property
    def prior(self) -> Tensor:
        """(T,) float64: how likely each context is among those that are here."""
        return self.counts.sum(1) / self.counts.sum()

    @property
    def share(self) -> float:
        """The share of the text's places whose contexts are here."""
        return float(self.counts.sum()) / self.occurrences

    @validated
    def log_probs(self, smoothing: NonNegative = 0.0) -> Tensor:
        """(T, N) float64: the empirical distribution of the next token, with `smoothing` added to every count."""
        smoothed = self.counts + smoothing
        return (smoothed / smoothed.sum(1, keepdim=True)).log()


@validated
def ngram_distributions(
    tokens: Tensor, context: Natural, vocab_size: Count, most: Count | None = None
) -> NgramDistributions:
    """The distributions of the next token after the `most` frequent contexts of `context` tokens in the text `tokens`
    (n,).

    Rows (rows, n) are parts of a text, which no context crosses. All contexts by default; of those that come equally
    often the first in order of tokens. The one context of no tokens has the distribution of single tokens. Raises
    `InputError` where the text is no longer than a context, has other tokens, or the table would not fit.
    """
    length, size = context, vocab_size
    text = np.atleast_2d(whole_tensor("tokens", tokens, "give token ids (n,), or (rows, n)").numpy())
    places = text.shape[-1] - length
    if text.ndim != 2 or not len(text) or places < 1:
        raise InputError("context", context, f"the text has {text.shape[-1]} tokens: use a shorter context")
    if not 0 <= int(text.min()) <= int(text.max()) < size:
        raise InputError("tokens", int(text[(text < 0) | (text >= size)][0]), f"tokens are 0 to {size - 1}")
    # Contexts are numbered token by token, which no power of the vocabulary limits.
    number = np.zeros(len(text) * places, dtype=np.int64)
    for place in range(length):
        number = number * size + text[:, place : place + places].ravel()
        number = np.unique(number, return_inverse=True)[1].astype(np.int64)
    _, first, times = np.unique(number, return_index=True, return_counts=True)
    wanted = len(times) if most is None else min(most, len(times))
    if wanted * size > _MOST_NUMBERS:
        hint = f"a table of {wanted} contexts and {size} tokens does not fit: ask for {_MOST_NUMBERS // size} contexts"
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
