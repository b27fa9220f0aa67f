"""Next-token counts after frequent contexts, within a memory limit and with back-off to shorter contexts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.validation import Natural, check, integer_range
from trialogue_lab.data.ngrams import NgramDistributions

TOKEN_BYTES, OFFSET_BYTES, COUNT_BYTES = 2, 4, 4
"""Bytes per stored token, per position of a context's counts, and per count."""
_MOST_TOKENS = 1 << 8 * TOKEN_BYTES


class NgramTable:
    """Next-token distributions after the most frequent contexts of up to S tokens, within a memory limit.

    If two contexts are equally frequent, the shorter one is stored first. A context that is not stored has the
    distribution of its longest stored suffix. If no suffix is stored, all tokens are equally likely.

    Args:
        orders: Distributions after contexts of 0, 1, ..., S tokens, from `ngram_distributions`.
        smoothing: Value added to every count.
        most_bytes: Memory limit in bytes (default: none).

    Attributes:
        size: Size in bytes of the stored contexts and counts.
        contexts: Number of stored contexts of each length.

    Raises:
        InputError: If the lengths of the contexts are not 0 to S, or there are too many tokens.
    """

    def __init__(
        self, orders: Sequence[NgramDistributions], *, smoothing: float = 0.0, most_bytes: int | None = None
    ) -> None:
        lengths = [distributions.contexts.shape[1] for distributions in orders]
        if len(lengths) < 2 or lengths != list(range(len(lengths))):
            raise InputError(
                "orders", lengths, "give the distributions after contexts of 0, 1, and so on up to S tokens"
            )
        hint = f"a token takes {TOKEN_BYTES} bytes: use at most {_MOST_TOKENS}"
        self.vocab_size = check("vocab_size", orders[0].counts.shape[1], integer_range(1, _MOST_TOKENS), hint)
        self.context = lengths[-1]
        different = [(distributions.counts > 0).sum(1).numpy() for distributions in orders]
        sizes = np.concatenate(
            [
                length * TOKEN_BYTES + OFFSET_BYTES + number * (TOKEN_BYTES + COUNT_BYTES)
                for length, number in enumerate(different)
            ]
        )
        times = np.concatenate([distributions.counts.sum(1).numpy() for distributions in orders])
        order = np.argsort(-times, kind="stable")
        room = math.inf if most_bytes is None else check("most_bytes", most_bytes, Natural)
        kept = np.zeros(len(sizes), dtype=bool)
        kept[order[sizes[order].cumsum() <= room]] = True
        self.size = int(sizes[kept].sum())
        parts = np.split(kept, np.cumsum([len(distributions.counts) for distributions in orders])[:-1])
        self._laws: list[Tensor] = []
        self._places: list[dict[tuple[int, ...], int]] = []
        for distributions, part in zip(orders, parts, strict=True):
            chosen = torch.from_numpy(part)
            self._laws.append(
                distributions._replace(counts=distributions.counts[chosen]).log_probs(smoothing)
            )
            self._places.append(
                {tuple(row): place for place, row in enumerate(distributions.contexts[chosen].tolist())}
            )
        self.contexts = tuple(map(len, self._laws))

    def context_log_probs(self, contexts: Tensor) -> Tensor:
        """Return the log-probabilities of the token after each context.

        Args:
            contexts: Token ids (n, S), int64.

        Returns:
            Log-probabilities (n, N) float64, where N is the number of tokens of the vocabulary.
        """
        if contexts.ndim != 2 or contexts.shape[1] != self.context:
            raise InputError("contexts", tuple(contexts.shape), f"give token ids (n, {self.context})")
        answers = torch.full(
            (len(contexts), self.vocab_size), -math.log(self.vocab_size), dtype=torch.float64
        )
        for length, (distributions, places) in enumerate(zip(self._laws, self._places, strict=True)):
            ends = contexts[:, self.context - length :].tolist()
            row = torch.tensor([places.get(tuple(end), -1) for end in ends], dtype=torch.int64)
            answers[row >= 0] = distributions[row[row >= 0]]
        return answers
