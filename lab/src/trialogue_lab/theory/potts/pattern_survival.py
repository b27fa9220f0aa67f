"""How long a model with a finite window follows one stored pattern, exactly: a chain that dies at the first wall.

A model whose next token depends on the last w tokens over V of them is a Potts chain with windows of w + 1 (Theorem 1.2
of the Potts-chain document); what it generates is a Markov chain on windows of W >= w tokens. Killed when the window
stops following its label, the chain's mass after r steps is the probability that the text is still in the pattern it
started in, and its largest eigenvalue the rate at which that falls in the long run: Corollary 1.2.1, with its number.
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
from trialogue_lab.theory.potts.greedy_patterns import checked_log_probs

Array = NDArray[np.float64]
_MOST_STATES = 1 << 24
_PERIODS = 100_000


@compiled
def _advance(
    mass: Array, codes: NDArray[np.int64], following: NDArray[np.int64], table: Array, after: Array
) -> float:
    """Add to `after` what each window's mass gives to those that follow it; return what goes to none."""
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
    """The long-run rate (nats per token) at which survival falls, and the relative change of its last iteration."""

    rate: float
    change: float


class PatternSurvival:
    """The windows of `window` tokens that follow `label`, at every phase, and where each next token leads them.

    Patterns, labels, and which of them a window follows, are those of `trialogue.data.potts.patterns.StoredPatterns`:
    label p * period + f is pattern p in phase f. Raises `InputError` as `StoredPatterns` does, for a label that does
    not exist, and for more than 2^24 windows.
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
        """Probability (steps + 1,) that no wall has come after 0, 1, ..., steps tokens.

        `log_probs` (V^w, V), or (steps, V^w, V) where they differ from step to step, are those of the next token given
        the last w <= window tokens, in the order of `whole_sequences`. The text starts as `prompt` tokens of the
        pattern (by default one window). Raises `InputError` for log-probabilities of another shape, and for rows that
        are none.
        """
        by_step = self._checked(log_probs, steps)
        places = self.vocab_size ** np.arange(self.window - 1, -1, -1)
        start = int((self._predicted[self._label][: self.window] * places).sum())
        mass = (self._alive[0] == start).astype(np.float64)
        if not mass.any():
            hint = "the label's own window follows another label: use a longer window"
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
        """The rate at which survival falls in the long run: minus the log of the chain's largest eigenvalue, per token.

        `log_probs` (V^w, V) as in `curve`. Found by powers of the chain over one period, until the rate
        changes by less than `tolerance` of itself; what dies is added up rather than subtracted from one, so that a
        rate far below rounding keeps its digits. Raises `InputError` where the rate does not settle.
        """
        log_probs = real_tensor("log_probs", log_probs, "give the log-probabilities (V^w, V)")
        if log_probs.ndim == 3 and len(log_probs) > 1:
            raise InputError("log_probs", tuple(log_probs.shape), "a rate needs one law for all steps")
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
                # What is periodic over these rounds would never settle; the mean with the round before does, and has
                # the same leading vector.
                mass = start + mass * math.exp(-total)
                mass /= mass.sum()
        hint = f"the rate still changes by {change:.1e} of itself: use a larger tolerance"
        raise InputError("log_probs", rate, hint)

    def _step(self, position: int, mass: Array, table: Array) -> tuple[Array, float]:
        """The law after one token, of those that live on, and the share that does not."""
        after = np.zeros(len(self._alive[(position + 1) % self.period]))
        lost = _advance(mass, self._alive[position], self._next[position], table, after)
        # Together they are one but for rounding, and a small loss must keep its digits.
        kept = float(after.sum())
        return (after / kept, lost / (lost + kept)) if kept > 0 else (after, 1.0)

    def _checked(self, log_probs: Tensor, steps: int) -> Array:
        """Probabilities (1 or steps, V^w, V)."""
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
        probabilities: Array = checked_log_probs(by_step).exp().numpy()
        return probabilities

    def _followers(self, position: int) -> NDArray[np.int64]:
        """Codes, ascending, of the windows that follow the label where their first token is at `position`."""
        own = self._distances(self._label, position)
        follows = np.ones(len(own), dtype=bool)
        for label in range(len(self._predicted)):
            if label != self._label:
                other = self._distances(label, position)
                follows &= own < other if label < self._label else own <= other
        return np.flatnonzero(follows)

    def _distances(self, label: int, position: int) -> NDArray[np.int16]:
        """Tokens (V^window,) in which each window differs from what `label` predicts from `position` on."""
        distances = np.zeros(1, dtype=np.int16)
        for token in self._predicted[label][position : position + self.window]:
            differs = (np.arange(self.vocab_size) != token).astype(np.int16)
            distances = (distances[:, None] + differs).ravel()
        return distances

    def _successors(self, position: int) -> NDArray[np.int64]:
        """For each living window and next token, its place among the next living windows, or -1 (n, V)."""
        alive, following = self._alive[position], self._alive[(position + 1) % self.period]
        windows = self.vocab_size**self.window
        codes = (alive[:, None] * self.vocab_size + np.arange(self.vocab_size)) % windows
        places = np.searchsorted(following, codes).clip(max=max(0, len(following) - 1))
        found = following[places] == codes if len(following) else np.zeros(codes.shape, dtype=bool)
        return np.where(found, places, -1)
