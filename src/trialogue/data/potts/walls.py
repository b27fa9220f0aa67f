"""Exact distributions of the domain walls of a Potts chain.

The label of a window is its nearest stored pattern and phase (see `StoredPatterns`). It depends on the tokens of the
window and on its position modulo the period of the patterns. A domain wall is a pair of consecutive windows with
different labels. Two consecutive windows of W tokens take V^(W+1) values.
"""

import math
from collections.abc import Iterator
from hashlib import blake2b

import torch
from torch import Tensor

from trialogue.data.potts.messages import Messages, require_small_matrix
from trialogue.data.potts.patterns import StoredPatterns
from trialogue.errors import InputError

_MAX_BATCH_ENTRIES = 2**21


class Walls:
    """Distributions of the domain walls of a Potts chain at one temperature.

    A window is a run of consecutive tokens. Its label is the stored pattern and phase with the smallest Hamming
    distance to it. A domain wall is a pair of consecutive windows with different labels.

    Args:
        patterns: Patterns that define the labels.
        messages: Messages of the chain, which include the temperature.

    Raises:
        InputError: If the tables of pairs of windows would not fit into memory.
    """

    def __init__(self, patterns: StoredPatterns, messages: Messages) -> None:
        require_small_matrix(patterns.vocab_size, patterns.window + 1)
        if patterns.period * messages.vocab ** (messages.window + 1) > 2**27:
            raise InputError(
                "patterns",
                patterns.period,
                f"use shorter patterns or windows, because {patterns.period} tables of "
                f"{messages.vocab}^{messages.window + 1} pairs of windows do not fit into memory",
            )
        self._messages, self._labels = messages, patterns.labels
        self._tables = torch.stack([patterns.window_labels(site) for site in range(patterns.period)])

    def probabilities(self, windows: int) -> Tensor:
        """Return the probability of a domain wall between each pair of consecutive windows.

        Args:
            windows: Number of windows of the chain.

        Returns:
            Probabilities (windows - 1,) float64. Entry i is the probability that windows i and i + 1 have different
            labels.
        """
        vocab, states = self._messages.vocab, self._messages.states
        period = len(self._tables)
        weights = self._messages.log_weights
        following = self._tables.roll(-1, 0)
        # The axes are the position, the first token, the shared state of both windows and the last token.
        differs = self._tables.view(period, vocab, states, 1) != following.view(period, 1, states, vocab)

        def wall_probability(before: Tensor, after: Tensor, residue: Tensor) -> Tensor:
            n = len(before)
            first = (before[:, :, None] + weights.view(states, vocab)).view(n, vocab, states)
            second = (weights.view(vocab, states) + after[:, None, :]).view(n, states, vocab)
            shared = (first.logsumexp(1) + second.logsumexp(2)).softmax(1)
            # All terms are positive, so the probability of a rare wall has full relative precision.
            wall = torch.einsum(
                "nxs,nxsy,nsy->ns", first.softmax(1), differs[residue].double(), second.softmax(2)
            )
            return (shared * wall).sum(1)

        if windows < 2:
            return torch.zeros(0, dtype=torch.float64)
        return self._messages.map_windows(windows, period, 2, wall_probability)

    def log_run_lengths(self, windows: int) -> Tensor:
        """Return the log-distribution of the number of windows before the first domain wall.

        Args:
            windows: Number of windows of the chain.

        Returns:
            Log-probabilities (windows,) float64. Entry r - 1 is the probability that the first r windows have the
            same label and window r + 1 has a different one. The last entry is the log-probability of no wall.
        """
        log_weights = torch.full((windows,), -math.inf, dtype=torch.float64)
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
                log_weights[count - 1] = torch.logaddexp(log_weights[count - 1], weight)
        return log_weights - self._messages.log_partition(windows)

    def log_no_wall(self, windows: int) -> float:
        """Return the log-probability that all windows have the same label.

        Args:
            windows: Number of windows of the chain.
        """
        weights = [self._log_weight_without_wall(labels, windows) for labels in self._chunks()]
        return float(torch.stack(weights).logsumexp(0)) - self._messages.log_partition(windows)

    def _log_weight_without_wall(self, labels: Tensor, windows: int) -> Tensor:
        """Return the total log-weight () of the sequences whose windows all have the same one of `labels`."""
        # The normalized messages become periodic. After the first repetition, further periods only change the scale.
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
            runs = self._extend(runs, allowed[site % len(allowed)])
            site += 1
        return (runs + scale[:, None]).flatten().logsumexp(0)

    def _runs(self, labels: Tensor, windows: int) -> Iterator[Tensor]:
        """Yield the log-weights (k, states) of runs of 0, 1, ..., `windows` windows that all have one of k `labels`."""
        allowed = self._allowed(labels)
        runs = torch.zeros(len(labels), self._messages.states, dtype=torch.float64)
        yield runs
        for site in range(windows):
            runs = self._extend(runs, allowed[site % len(allowed)])
            yield runs

    def _allowed(self, labels: Tensor) -> list[Tensor]:
        """Return for each position in the period the log-weights (k, V^W) of the windows with each of k `labels`."""
        log_weights = self._messages.log_weights
        return [torch.where(table == labels[:, None], log_weights, -math.inf) for table in self._tables]

    def _extend(self, runs: Tensor, allowed: Tensor) -> Tensor:
        """Return the log-weights (k, states) of such sequences with one more window."""
        vocab, states = self._messages.vocab, self._messages.states
        weights = runs[:, :, None] + allowed.view(len(runs), states, vocab)
        return weights.view(len(runs), vocab, states).logsumexp(1)

    def _chunks(self) -> tuple[Tensor, ...]:
        entries_per_label = len(self._tables) * self._messages.vocab**self._messages.window
        return torch.arange(self._labels).split(max(1, _MAX_BATCH_ENTRIES // entries_per_label))
