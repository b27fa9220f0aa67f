"""Domain walls of a Potts chain, exactly: where the label of the nearest pattern changes from one window to the next.

Labels depend on a window and its site modulo the period, walls on two successive windows: V^(W+1) of them.
"""

import math
from collections.abc import Iterator
from hashlib import blake2b

import torch
from torch import Tensor

from trialogue.data.potts.messages import Messages, require_fitting
from trialogue.data.potts.patterns import StoredPatterns
from trialogue.errors import InputError

_AT_ONCE = 2**21


class Walls:
    """Distributions of the walls of `patterns` in chains with the given `messages`.

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
        weights = [self._log_weight_of_one(labels, windows) for labels in self._chunks()]
        return float(torch.stack(weights).logsumexp(0)) - self._messages.log_partition(windows)

    def _log_weight_of_one(self, labels: Tensor, windows: int) -> Tensor:
        """Log-weight () of all ways to show one and the same of `labels` in every window.

        What a label's ways look like from one period to the next settles; once they repeat bit for bit, all further
        periods only scale them.
        """
        allowed = self._allowed(labels)
        runs = torch.zeros(len(labels), self._messages.states, dtype=torch.float64)
        scale = torch.zeros(len(labels), dtype=torch.float64)
        seen: dict[bytes, tuple[int, Tensor]] = {}
        site, settled = 0, False
        while site < windows:
            if not settled and site % len(allowed) == 0:
                largest = runs.amax(1)
                largest = torch.where(largest > -math.inf, largest, 0.0)
                runs, scale = runs - largest[:, None], scale + largest
                before, scale_before = seen.setdefault(
                    blake2b(runs.numpy().tobytes()).digest(), (site, scale)
                )
                if settled := before < site:
                    cycles = (windows - site) // (site - before)
                    scale = scale + cycles * (scale - scale_before)
                    site += cycles * (site - before)
                    continue
            runs = self._longer(runs, allowed[site % len(allowed)])
            site += 1
        return (runs + scale[:, None]).flatten().logsumexp(0)

    def _runs(self, labels: Tensor, windows: int) -> Iterator[Tensor]:
        """Log-weights (k, states) of the ways to show k `labels` each in 0, 1, ..., `windows` windows on end."""
        allowed = self._allowed(labels)
        runs = torch.zeros(len(labels), self._messages.states, dtype=torch.float64)
        yield runs
        for site in range(windows):
            runs = self._longer(runs, allowed[site % len(allowed)])
            yield runs

    def _allowed(self, labels: Tensor) -> list[Tensor]:
        """Log-weights (k, V^W) of the windows that show each of k `labels`, by their site modulo the period."""
        log_weights = self._messages.log_weights
        return [torch.where(table == labels[:, None], log_weights, -math.inf) for table in self._tables]

    def _longer(self, runs: Tensor, allowed: Tensor) -> Tensor:
        """Log-weights (k, states) of ways that are one window longer than `runs` (k, states)."""
        vocab, states = self._messages.vocab, self._messages.states
        weights = runs[:, :, None] + allowed.view(len(runs), states, vocab)
        return weights.view(len(runs), vocab, states).logsumexp(1)

    def _chunks(self) -> tuple[Tensor, ...]:
        size = max(1, _AT_ONCE // (len(self._tables) * self._messages.vocab**self._messages.window))
        return torch.arange(self._labels).split(size)
