"""Transfer-matrix messages of a chain of windows: everything exact about p(x) ∝ exp(sum_i log_weights[window i]).

A state is what W - 1 successive sites show, a window what W show; both are numbers in base V, the first site leading.
A message has one entry per state, so that a step costs the V^W nonzeros of the transfer matrix and not V^(2W-2).
"""

import math
from collections.abc import Callable
from hashlib import blake2b

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import index_tensor

MAX_WINDOWS = 2**24
"""A transfer matrix of more nonzeros V^W is refused: 2^24 of them take 128 MiB."""
MAX_MESSAGES = 2**27
"""More numbers in messages are refused: 2^27 of them take 1 GiB."""
_AT_ONCE = 2**21


def require_fitting(vocab: int, window: int) -> None:
    """Raise `InputError` where a transfer matrix of V^W nonzeros would not fit, and say what would."""
    if window * math.log(vocab) <= math.log(MAX_WINDOWS) + 1e-9:
        return
    widest = max(width for width in range(25) if vocab**width <= MAX_WINDOWS)
    most = max(2, math.floor(MAX_WINDOWS ** (1 / window) + 1e-9))
    fits = [f"windows of at most {widest}"] if widest else []
    fits += [f"a vocabulary of at most {most}"] if most**window <= MAX_WINDOWS else []
    raise InputError(
        "window",
        window,
        f"the transfer matrix would have {vocab}^{window} nonzeros (at most {MAX_WINDOWS}): use {' or '.join(fits)}",
    )


def window_numbers(tokens: Tensor, vocab: int, window: int) -> Tensor:
    """The number (rows, L - W + 1) of every window of `tokens` (rows, L), in base `vocab`."""
    windows = tokens.shape[1] - window + 1
    number = torch.zeros(len(tokens), windows, dtype=torch.int64)
    for place in range(window):
        number.mul_(vocab).add_(tokens[:, place : place + windows])
    return number


def checked_tokens(tokens: Tensor, vocab: int, least: int, most: int | None = None) -> Tensor:
    """`tokens` (rows, L) as int64; raises `InputError` unless they are ids below `vocab` and L is in least..most."""
    wanted = f"of shape (rows, {least})" if most == least else f"of shape (rows, L), L at least {least}"
    tokens = index_tensor(
        "tokens",
        tokens,
        (None, least if most == least else None),
        vocab,
        shape_hint=f"give token ids {wanted}",
        range_hint=f"use tokens from 0 to V - 1 = {vocab - 1}",
    )
    if not least <= tokens.shape[1] <= (most or tokens.shape[1]):
        raise InputError("tokens", tuple(tokens.shape), f"give token ids {wanted}")
    return tokens


class _Iterates:
    """m_0 = 0 and m_(k+1) = step(m_k), each less its largest entry, which `log_scale` adds up.

    Such iterates settle. Once one repeats bit for bit, all that follow are those since its first time, so that only
    distinct ones are computed and kept, whatever the length.
    """

    def __init__(self, states: int, step: Callable[[Tensor], Tensor]) -> None:
        self._step, self._states = step, states
        self._rows = torch.zeros(1, states, dtype=torch.float64)  # the messages, and room for more
        self._count = 1
        self._scale = [0.0]  # of the messages up to each
        self._first_seen = {self._digest(0): 0}
        self._repeats: tuple[int, float] | None = None  # the first of the cycle, and what one cycle scales by

    def _digest(self, place: int) -> bytes:
        return blake2b(self._rows[place].numpy().data, digest_size=16).digest()

    def extend(self, count: int) -> None:
        """Compute up to m_count; raises `InputError` where they do not fit."""
        fitting = MAX_MESSAGES // self._states
        while self._repeats is None and self._count <= count:
            if self._count >= fitting:
                raise InputError(
                    "length",
                    count,
                    f"messages of {self._states} states for so many windows would not fit: use at most "
                    f"{fitting - 1} windows, or a higher temperature, where messages repeat",
                )
            if self._count == len(self._rows):
                room = self._rows.new_empty(min(self._count, fitting - self._count), self._states)
                self._rows = torch.cat((self._rows, room))
            place = self._count
            message = self._step(self._rows[place - 1])
            largest = message.amax()
            self._rows[place] = message - largest
            scale = self._scale[-1] + float(largest)
            first = self._first_seen.setdefault(self._digest(place), place)
            if first < place:
                self._repeats = first, scale - self._scale[first]
            else:
                self._count += 1
                self._scale.append(scale)

    def places(self, counts: Tensor) -> Tensor:
        """Where in `table` the iterates m_k lie, k of `counts` (n,)."""
        if self._repeats is None:
            return counts
        first = self._repeats[0]
        period = self._count - first
        return torch.where(counts < first, counts, first + (counts - first) % period)

    def log_scale(self, count: int) -> float:
        """What was taken off up to m_count, in sum."""
        if self._repeats is None or count < len(self._scale):
            return self._scale[count]
        first, cycle = self._repeats
        cycles, rest = divmod(count - first, self._count - first)
        return self._scale[first + rest] + cycles * cycle

    def table(self) -> Tensor:
        """All distinct iterates (distinct, states)."""
        return self._rows[: self._count]

    def at(self, count: int) -> Tensor:
        """m_count (states,)."""
        return self._rows[int(self.places(torch.tensor(count)))]


class Messages:
    """Messages along windows of `log_weights` (V, ..., V) float64 of W axes, for chains of any length.

    A message after k windows does not depend on the length of the chain, so those of one length serve all.
    """

    def __init__(self, log_weights: Tensor) -> None:
        self.vocab, self.window = log_weights.shape[0], log_weights.ndim
        self.states = self.vocab ** (self.window - 1)
        self.log_weights = log_weights.reshape(-1)
        self._backward = _Iterates(self.states, self._step_backward)
        self._forward = _Iterates(self.states, self._step_forward)

    def _step_backward(self, message: Tensor) -> Tensor:
        weights = self.log_weights.view(self.vocab, self.states) + message
        return weights.view(self.states, self.vocab).logsumexp(1)

    def _step_forward(self, message: Tensor) -> Tensor:
        weights = self.log_weights.view(self.states, self.vocab) + message[:, None]
        return weights.view(self.vocab, self.states).logsumexp(0)

    def log_partition(self, windows: int) -> float:
        """log Z of a chain of so many windows."""
        self._backward.extend(windows)
        return self._backward.log_scale(windows) + float(self._backward.at(windows).logsumexp(0))

    def backward(self, windows: int) -> tuple[Tensor, float]:
        """The log-weight (states,) of all ways to go on for so many windows is the first answer plus the second."""
        self._backward.extend(windows)
        return self._backward.at(windows), self._backward.log_scale(windows)

    def backward_places(self, windows: Tensor) -> Tensor:
        """Where in `backward_table` the messages of so many windows (n,) lie; equal places, equal messages."""
        self._backward.extend(int(windows.max()) if len(windows) else 0)
        return self._backward.places(windows)

    def backward_table(self) -> Tensor:
        """All distinct backward messages so far (distinct, states), each less its largest entry."""
        return self._backward.table()

    def by_window(
        self, windows: int, period: int, span: int, answer: Callable[[Tensor, Tensor, Tensor], Tensor]
    ) -> Tensor:
        """What `answer` says of every run of `span` successive windows in a chain of so many (runs, ...).

        `answer(before, after, residue)` gets the forward messages (n, states) before the runs, the backward messages
        (n, states) behind them, and where (n,) they begin, modulo `period`. It is asked once for equal runs.
        """
        begin = torch.arange(windows - span + 1)
        self._forward.extend(windows)
        self._backward.extend(windows)
        fronts, backs = self._forward.places(begin), self._backward.places(windows - span - begin)
        # As one number each: sorting columns takes a hundred times as long.
        radix = int(backs.max()) + 1
        kinds, kind = torch.unique((fronts * radix + backs) * period + begin % period, return_inverse=True)
        kinds = torch.stack((kinds // period // radix, kinds // period % radix, kinds % period))
        before, after = self._forward.table(), self._backward.table()
        size = max(1, _AT_ONCE // self.vocab ** (self.window + span - 1))
        answers: Tensor | None = None
        for first in range(0, kinds.shape[1], size):
            some = kinds[:, first : first + size]
            part = answer(before[some[0]], after[some[1]], some[2])
            # Parts kept one by one would pin the large blocks between them.
            answers = part.new_empty(kinds.shape[1], *part.shape[1:]) if answers is None else answers
            answers[first : first + size] = part
        assert answers is not None
        return answers[kind]

    def window_law(self, before: Tensor, after: Tensor) -> Tensor:
        """p(window) (n, V^W) from the messages (n, states) on both sides of it."""
        n = len(before)
        weights = before[:, :, None] + self.log_weights.view(self.states, self.vocab)
        return (weights.view(n, self.vocab, self.states) + after[:, None, :]).view(n, -1).softmax(1)
