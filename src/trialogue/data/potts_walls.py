"""Domain walls of a Potts chain, exactly: where the label of the nearest pattern changes from one window to the next.

Labels depend on a window and its site modulo the period, walls on two successive windows: V^(W+1) of them.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from trialogue.data.potts_messages import Messages, require_fitting
from trialogue.data.potts_patterns import StoredPatterns
from trialogue.errors import InputError

_AT_ONCE = 2**21


class Walls:
    """Laws of the walls of `patterns` in chains with the given `messages`.

    Raises `InputError` where the pairs of windows would not fit.
    """

    def __init__(self, patterns: StoredPatterns, messages: Messages) -> None:
        require_fitting(patterns.vocab_size, patterns.window + 1)
        if patterns.period * messages.vocab ** (messages.window + 1) > 2**27:
            raise InputError(
                "patterns",
                patterns.period,
                f"a period of so many tokens needs as many tables of {messages.vocab}^{messages.window + 1} pairs of "
                "windows, which would not fit: use shorter patterns or windows",
            )
        self._messages, self._labels = messages, patterns.labels
        self._tables = torch.stack([patterns.window_labels(site) for site in range(patterns.period)])

    def probabilities(self, windows: int) -> Tensor:
        """P(wall between windows i and i + 1) (windows - 1,)."""
        vocab, states = self._messages.vocab, self._messages.states
        period = len(self._tables)
        weights = self._messages.log_weights
        following = self._tables.roll(-1, 0)
        # By the state both windows share: (period, first token, state, last token).
        apart = self._tables.view(period, vocab, states, 1) != following.view(period, 1, states, vocab)

        def answer(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            n = len(before)
            first = (before[:, :, None] + weights.view(states, vocab)).view(n, vocab, states)
            second = (weights.view(vocab, states) + after[:, None, :]).view(n, states, vocab)
            shared = (first.logsumexp(1) + second.logsumexp(2)).softmax(1)
            # Positive terms alone: a wall may be as rare as floats go.
            wall = torch.einsum(
                "nxs,nxsy,nsy->ns", first.softmax(1), apart[residue].double(), second.softmax(2)
            )
            return (shared * wall).sum(1)

        if windows < 2:
            return torch.zeros(0, dtype=torch.float64)
        return self._messages.by_window(windows, period, 2, answer)

    def log_run_lengths(self, windows: int) -> Tensor:
        """log P(the first wall is behind r windows) (windows,) of r = 1, ..., windows; the last: there is none."""
        answer = torch.full((windows,), -math.inf, dtype=torch.float64)
        vocab, states = self._messages.vocab, self._messages.states
        for labels in self._chunks():
            for count, runs in enumerate(self._runs(labels, windows)):
                if count == 0:
                    continue
                ends = runs[:, :, None] + self._messages.log_weights.view(states, vocab)
                if count < windows:
                    leaving = self._tables[count % len(self._tables)] != labels[:, None]
                    ends = ends.view(len(labels), -1).masked_fill(~leaving, -math.inf)
                    after, scale = self._messages.backward(windows - count - 1)
                    weight = (ends.view(len(labels), vocab, states) + after).flatten().logsumexp(0) + scale
                else:
                    weight = runs.flatten().logsumexp(0)
                answer[count - 1] = torch.logaddexp(answer[count - 1], weight)
        return answer - self._messages.log_partition(windows)

    def log_no_wall(self, windows: int) -> float:
        """log P(all windows have one label)."""
        weights = []
        for labels in self._chunks():
            for runs in self._runs(labels, windows):
                last = runs
            weights.append(last.flatten().logsumexp(0))
        return float(torch.stack(weights).logsumexp(0)) - self._messages.log_partition(windows)

    def _runs(self, labels: Tensor, windows: int) -> Iterator[Tensor]:
        """Log-weights (k, states) of the ways to show k `labels` each in 0, 1, ..., `windows` windows on end."""
        vocab, states = self._messages.vocab, self._messages.states
        allowed = [
            torch.where(table == labels[:, None], self._messages.log_weights, -math.inf)
            for table in self._tables
        ]
        runs = torch.zeros(len(labels), states, dtype=torch.float64)
        yield runs
        for site in range(windows):
            weights = allowed[site % len(allowed)].view(len(labels), states, vocab)
            runs = (runs[:, :, None] + weights).view(len(labels), vocab, states).logsumexp(1)
            yield runs

    def _chunks(self) -> tuple[Tensor, ...]:
        size = max(1, _AT_ONCE // (len(self._tables) * self._messages.vocab**self._messages.window))
        return torch.arange(self._labels).split(size)
