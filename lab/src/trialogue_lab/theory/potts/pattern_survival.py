"""Exact probability that sampled text keeps repeating a periodic pattern (Corollary 1.2.1).

The next token of the model depends on the last w tokens. A window of tokens follows the pattern, at the shift
(phase), with the smallest Hamming distance. Windows of sampled text form a Markov chain. Survival means that
all windows so far follow the chosen pattern and phase.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.compilation import compiled
from trialogue.data.potts.patterns import StoredPatterns
from trialogue.errors import InputError
from trialogue.validation import Finite, Natural, validated
from trialogue_lab.theory.potts.greedy_patterns import check_log_probs

Array = NDArray[np.float64]
_MOST_STATES = 1 << 24
_PERIODS = 100_000


@compiled
def _advance(
    mass: Array, codes: NDArray[np.int64], following: NDArray[np.int64], table: Array, after: Array
) -> float:
    """Update the probabilities of all windows for one more token. Return the probability of leaving the pattern."""
    lost, contexts, tokens = 0.0, table.shape[0], table.shape[1]
    for index in range(len(mass)):
        if mass[index] == 0:
            continue
        context = codes[index] % contexts
        for token in range(tokens):
            flow = mass[index] * table[context, token]
            target = following[index, token]
            if target < 0:
                lost += flow
            else:
                after[target] += flow
    return lost


class DecayRate(NamedTuple):
    """Rate at which the probability of still following a pattern decreases with the number of tokens.

    Attributes:
        rate: Long-run decrease of the log-probability per token, in nats.
        change: Relative change of `rate` in the last iteration.
    """

    rate: float
    change: float


class PatternSurvival:
    """Computes the probability that sampled text keeps following a stored pattern.

    A stored pattern is a periodic sequence of tokens. A window of W tokens follows the pattern and phase with
    the smallest Hamming distance. A label numbers them: label p * period + f predicts the token
    patterns[p][(i + f) % period] at position i. The lowest label wins ties.

    Args:
        patterns: One period of each stored pattern as token ids. All patterns have the same length.
        window: Number W of tokens in a window.
        label: Label that the text must follow.
        vocab_size: Number of tokens V (default: one more than the largest token of the patterns).

    Raises:
        InputError: If the patterns or the label are invalid, or there are more than 2^24 windows.
    """

    @validated
    def __init__(
        self,
        patterns: Iterable[Sequence[int] | Tensor],
        window: int,
        label: Natural,
        vocab_size: int | None = None,
    ) -> None:
        stored = StoredPatterns(patterns, window, vocab_size)
        self.vocab_size, self.window, self.period = stored.vocab_size, stored.window, stored.period
        if label >= stored.labels:
            raise InputError("label", label, f"the patterns have {stored.labels} labels: use a lower one")
        if self.vocab_size**window > _MOST_STATES:
            hint = f"{self.vocab_size}^{window} windows are too many to list: use a shorter one"
            raise InputError("window", window, hint)
        self._predicted = [
            stored.predicted(other, 0, self.period + window).numpy() for other in range(stored.labels)
        ]
        self._label = label
        self._alive = [self._followers(position) for position in range(self.period)]
        self._next = [self._successors(position) for position in range(self.period)]

    @validated
    def curve(self, log_probs: Tensor, steps: Natural) -> Array:
        """Return the probability that text still follows the pattern after each number of sampled tokens.

        The text starts with W tokens of the pattern, and further tokens are sampled from the model.

        Args:
            log_probs: Next-token log-probabilities (V^w, V) given the last w <= W tokens, in the order of
                `itertools.product`. Use (steps, V^w, V) if they depend on the step.
            steps: Number of sampled tokens.

        Returns:
            Probabilities (steps + 1,) after 0, 1, ..., `steps` tokens.

        Raises:
            InputError: If `log_probs` is invalid, or the first window follows another label.
        """
        by_step = self._checked(log_probs, steps)
        places = self.vocab_size ** np.arange(self.window - 1, -1, -1)
        start = int((self._predicted[self._label][: self.window] * places).sum())
        mass = (self._alive[0] == start).astype(np.float64)
        if not mass.any():
            hint = "a window of this pattern is nearest to another pattern or phase: use a longer window"
            raise InputError("patterns", start, hint)
        log_survival = np.zeros(steps + 1)
        for step in range(steps):
            table = by_step[step if len(by_step) > 1 else 0]
            mass, lost = self._step(step % self.period, mass, table)
            with np.errstate(divide="ignore"):
                log_survival[step + 1] = log_survival[step] + np.log1p(-lost)
            if lost >= 1:
                log_survival[step + 1 :] = -np.inf
                break
        survival: Array = np.exp(log_survival)
        return survival

    @validated
    def decay_rate(self, log_probs: Tensor, *, tolerance: Finite = 1e-9) -> DecayRate:
        """Return the long-run rate at which the probability of still following the pattern decreases.

        For text of n tokens, this probability falls like exp(-rate n). The rate follows from the largest
        eigenvalue of the transition matrix on windows that follow the pattern, by power iteration.

        Args:
            log_probs: Next-token log-probabilities (V^w, V) given the last w <= W tokens, in the order of
                `itertools.product`.
            tolerance: Relative change of the rate at which the iteration stops.

        Raises:
            InputError: If `log_probs` is invalid or the rate does not converge.
        """
        log_probs = real_tensor("log_probs", log_probs, "give the log-probabilities (V^w, V)")
        if log_probs.ndim == 3 and len(log_probs) > 1:
            raise InputError(
                "log_probs",
                tuple(log_probs.shape),
                "a decay rate requires one table for all steps: give shape (V^w, V)",
            )
        (table,) = self._checked(log_probs, 1)
        states = len(self._alive[0])
        mass = np.full(states, 1 / max(1, states))
        rate, change = math.nan, math.inf
        for round_ in range(_PERIODS):
            start, total = mass, 0.0
            for position in range(self.period):
                mass, lost = self._step(position, mass, table)
                if lost >= 1:
                    return DecayRate(math.inf, 0.0)
                total -= math.log1p(-lost)
            before, rate = rate, total / self.period
            change = abs(rate - before) / rate if rate > 0 else abs(rate - before)
            if change <= tolerance:
                return DecayRate(rate, change)
            if round_ >= states:
                # A periodic component would never converge. Averaging with the previous round removes it and
                # keeps the leading eigenvector.
                mass = start + mass * math.exp(-total)
                mass /= mass.sum()
        hint = f"the relative change of the rate is still {change:.1e}: use a larger tolerance"
        raise InputError("log_probs", rate, hint)

    def _step(self, position: int, mass: Array, table: Array) -> tuple[Array, float]:
        """Compute the probabilities of all windows after one more token.

        Returns the probabilities of windows that still follow the pattern, and the probability of the others.
        """
        after = np.zeros(len(self._alive[(position + 1) % self.period]))
        lost = _advance(mass, self._alive[position], self._next[position], table, after)
        # The two sum to one up to rounding. Dividing keeps the precision of a small loss.
        kept = float(after.sum())
        return (after / kept, lost / (lost + kept)) if kept > 0 else (after, 1.0)

    def _checked(self, log_probs: Tensor, steps: int) -> Array:
        """Check log-probabilities, and return probabilities (1 or steps, V^w, V)."""
        log_probs = real_tensor("log_probs", log_probs, "give log-probabilities (V^w, V)")
        shape = tuple(log_probs.shape)
        by_step = log_probs[None] if log_probs.ndim == 2 else log_probs
        v = self.vocab_size
        contexts = {v**width for width in range(self.window + 1)}
        if by_step.ndim != 3 or by_step.shape[2] != v or by_step.shape[1] not in contexts:
            hint = f"give ({v}^w, {v}) with w of at most window={self.window}, or such a table for each step"
            raise InputError("log_probs", shape, hint)
        if len(by_step) not in (1, steps):
            raise InputError("log_probs", shape, f"give one table, or one for each of {steps} steps")
        probabilities: Array = check_log_probs(by_step).exp().numpy()
        return probabilities

    def _followers(self, position: int) -> NDArray[np.int64]:
        """Return the sorted codes of all windows at `position` that are closer to this pattern than to others."""
        own = self._distances(self._label, position)
        follows = np.ones(len(own), dtype=bool)
        for label in range(len(self._predicted)):
            if label != self._label:
                other = self._distances(label, position)
                follows &= own < other if label < self._label else own <= other
        return np.flatnonzero(follows)

    def _distances(self, label: int, position: int) -> NDArray[np.int16]:
        """Return the Hamming distances (V^window,) of all windows from the tokens that `label` predicts."""
        distances = np.zeros(1, dtype=np.int16)
        for token in self._predicted[label][position : position + self.window]:
            differs = (np.arange(self.vocab_size) != token).astype(np.int16)
            distances = (distances[:, None] + differs).ravel()
        return distances

    def _successors(self, position: int) -> NDArray[np.int64]:
        """Return the index of the next window (n, V) after each window and token, or -1 if it leaves the pattern."""
        alive, following = self._alive[position], self._alive[(position + 1) % self.period]
        windows = self.vocab_size**self.window
        codes = (alive[:, None] * self.vocab_size + np.arange(self.vocab_size)) % windows
        places = np.searchsorted(following, codes).clip(max=max(0, len(following) - 1))
        found = following[places] == codes if len(following) else np.zeros(codes.shape, dtype=bool)
        return np.where(found, places, -1)
