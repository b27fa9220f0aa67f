"""Transfer-matrix messages of a Potts chain, from which exact probabilities are computed.

A window is W consecutive tokens, each one of V values, and a state is W - 1 consecutive tokens. Both are
encoded as base-V numbers with the first token as the most significant digit. The transfer matrix maps the
states before the last token of a window to the states after it. A message is a vector with one entry per
state.
"""

import math
from collections.abc import Callable
from hashlib import blake2b

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import index_tensor

MAX_WINDOWS = 2**24
"""Maximum number of nonzeros V^W of a transfer matrix (128 MiB)."""
MAX_MESSAGES = 2**27
"""Maximum number of message entries in memory (1 GiB)."""
_MAX_BATCH_ENTRIES = 2**21


def require_small_matrix(vocab: int, window: int) -> None:
    """Raise `InputError` if the transfer matrix has more than `MAX_WINDOWS` nonzeros V^W.

    Args:
        vocab: Number V of tokens.
        window: Number W of tokens in a window.

    Raises:
        InputError: If the matrix has more nonzeros. The message suggests smaller values.
    """
    if window * math.log(vocab) <= math.log(MAX_WINDOWS) + 1e-9:
        return
    max_window = max(width for width in range(25) if vocab**width <= MAX_WINDOWS)
    max_vocab = max(2, math.floor(MAX_WINDOWS ** (1 / window) + 1e-9))
    alternatives = [f"windows of at most {max_window}"] if max_window else []
    alternatives += [f"a vocabulary of at most {max_vocab}"] if max_vocab**window <= MAX_WINDOWS else []
    raise InputError(
        "window",
        window,
        f"use {' or '.join(alternatives)}, because the transfer matrix would have {vocab}^{window} nonzeros "
        f"(at most {MAX_WINDOWS})",
    )


def window_numbers(tokens: Tensor, vocab: int, window: int) -> Tensor:
    """Encode every window of `window` consecutive tokens as a number in base `vocab`.

    Args:
        tokens: Sequences (rows, L) int64 of tokens below `vocab`.
        vocab: Number of tokens, the base.
        window: Number of tokens in a window.

    Returns:
        Numbers (rows, L - window + 1) int64. The first token of a window is the most significant digit.
    """
    windows = tokens.shape[1] - window + 1
    number = torch.zeros(len(tokens), windows, dtype=torch.int64)
    for offset in range(window):
        number.mul_(vocab).add_(tokens[:, offset : offset + windows])
    return number


def validate_tokens(tokens: Tensor, vocab: int, min_length: int, max_length: int | None = None) -> Tensor:
    """Convert token ids to int64, and raise `InputError` if their shape or range is wrong.

    Args:
        tokens: Token ids (rows, L).
        vocab: Number of tokens.
        min_length: Minimum length L.
        max_length: Maximum length L (default: no maximum).

    Returns:
        Token ids (rows, L) int64.

    Raises:
        InputError: If the tokens are not ids below `vocab`, or L is out of range.
    """
    is_fixed = max_length == min_length
    wanted = f"of shape (rows, {min_length})" if is_fixed else f"of shape (rows, L), L at least {min_length}"
    tokens = index_tensor(
        "tokens",
        tokens,
        (None, min_length if is_fixed else None),
        vocab,
        shape_hint=f"give token ids {wanted}",
        range_hint=f"use tokens from 0 to V - 1 = {vocab - 1}",
    )
    if not min_length <= tokens.shape[1] <= (max_length or tokens.shape[1]):
        raise InputError("tokens", tuple(tokens.shape), f"give token ids {wanted}")
    return tokens


class _Iterates:
    """Vectors obtained by applying a function repeatedly, starting from zero.

    The largest entry is subtracted after each application, and `log_scale` returns the sum of the subtracted
    entries. In float64 the vectors become periodic after finitely many steps, so only distinct vectors are
    stored.
    """

    def __init__(self, states: int, step: Callable[[Tensor], Tensor]) -> None:
        self._step, self._states = step, states
        self._rows = torch.zeros(1, states, dtype=torch.float64)  # doubled when full
        self._count = 1  # number of used rows
        self._scale = [0.0]  # cumulative shift of each iterate
        self._first_seen = {self._digest(0): 0}
        self._cycle: tuple[int, float] | None = None  # index of its first iterate, and the shift per cycle

    def _digest(self, index: int) -> bytes:
        return blake2b(self._rows[index].numpy().data, digest_size=16).digest()

    def extend(self, count: int) -> None:
        """Compute all iterates up to the one with index `count`. Raise `InputError` if they do not fit into memory."""
        capacity = MAX_MESSAGES // self._states
        while self._cycle is None and self._count <= count:
            if self._count >= capacity:
                raise InputError(
                    "length",
                    count,
                    f"use at most {capacity - 1} windows, or a higher temperature, because the messages of "
                    f"{self._states} states do not fit into memory",
                )
            if self._count == len(self._rows):
                unused = self._rows.new_empty(min(self._count, capacity - self._count), self._states)
                self._rows = torch.cat((self._rows, unused))
            index = self._count
            message = self._step(self._rows[index - 1])
            largest = message.amax()
            self._rows[index] = message - largest
            scale = self._scale[-1] + float(largest)
            first = self._first_seen.setdefault(self._digest(index), index)
            if first < index:
                self._cycle = first, scale - self._scale[first]
            else:
                self._count += 1
                self._scale.append(scale)

    def indices(self, counts: Tensor) -> Tensor:
        """Return the row of `table` that holds each of the iterates with the indices `counts` (n,)."""
        if self._cycle is None:
            return counts
        first = self._cycle[0]
        period = self._count - first
        return torch.where(counts < first, counts, first + (counts - first) % period)

    def log_scale(self, count: int) -> float:
        """Return the total of the numbers that were subtracted to normalise the iterates up to index `count`."""
        if self._cycle is None or count < len(self._scale):
            return self._scale[count]
        first, scale_per_cycle = self._cycle
        cycles, remainder = divmod(count - first, self._count - first)
        return self._scale[first + remainder] + cycles * scale_per_cycle

    def table(self) -> Tensor:
        """Return all distinct iterates (distinct, states)."""
        return self._rows[: self._count]

    def at(self, count: int) -> Tensor:
        """Return the iterate with index `count`, a vector (states,)."""
        return self._rows[int(self.indices(torch.tensor(count)))]


class Messages:
    """Forward and backward messages of a Potts chain, for chains of any length (forward-backward algorithm).

    A state is W - 1 consecutive tokens. The backward message after k windows holds, for each state, the log
    of the total weight of all continuations by k windows. The forward message sums over all tokens before the
    state in the same way. A common constant, the log-scale, is subtracted from all entries of a message.

    Args:
        log_weights: Log-weight of each window of W tokens, as a float64 tensor (V, ..., V) with W axes. V is
            the number of tokens of the vocabulary.
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
        """Return log Z, where Z is the total weight of all sequences.

        Args:
            windows: Number of windows of a sequence, its length minus W - 1.
        """
        self._backward.extend(windows)
        return self._backward.log_scale(windows) + float(self._backward.at(windows).logsumexp(0))

    def backward(self, windows: int) -> tuple[Tensor, float]:
        """Return the backward message after some number of windows.

        Args:
            windows: Number k of windows.

        Returns:
            Message (states,) float64 with largest entry 0, and its log-scale. Their sum is the log of the total
            weight of all continuations of each state by k windows.
        """
        self._backward.extend(windows)
        return self._backward.at(windows), self._backward.log_scale(windows)

    def backward_indices(self, windows: Tensor) -> Tensor:
        """Return the rows of `backward_table` that hold the messages after the given numbers of windows.

        Args:
            windows: Numbers of windows (n,) int64.

        Returns:
            Row indices (n,) int64.
        """
        self._backward.extend(int(windows.max()) if len(windows) else 0)
        return self._backward.indices(windows)

    def backward_table(self) -> Tensor:
        """Return the distinct backward messages computed so far.

        Returns:
            Messages (distinct, states) float64, each with largest entry 0.
        """
        return self._backward.table()

    def map_windows(
        self, windows: int, period: int, span: int, function: Callable[[Tensor, Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Apply `function` to every run of `span` consecutive windows of a chain.

        The function receives the messages that summarize the tokens before and after a run. It is called with
        batches of runs. Runs with identical arguments are evaluated once.

        Args:
            windows: Number of windows of the chain.
            period: Number of positions after which the results of the function repeat, if they depend on the
                first position of a run. 1 if they do not.
            span: Number of windows of a run.
            function: Function `function(before, after, residue)` that returns a tensor with one row per run.
                It receives the forward messages (n, states) before the runs, the backward messages (n,
                states) after them, and their first positions (n,) modulo `period`.

        Returns:
            Results (windows - span + 1, ...), one row per run in the order of the chain.
        """
        start = torch.arange(windows - span + 1)
        self._forward.extend(windows)
        self._backward.extend(windows)
        forward, backward = self._forward.indices(start), self._backward.indices(windows - span - start)
        # Encoding the columns as one number makes the sort about a hundred times faster.
        radix = int(backward.max()) + 1
        codes = (forward * radix + backward) * period + start % period
        distinct, inverse = torch.unique(codes, return_inverse=True)
        columns = torch.stack((distinct // period // radix, distinct // period % radix, distinct % period))
        before, after = self._forward.table(), self._backward.table()
        size = max(1, _MAX_BATCH_ENTRIES // self.vocab ** (self.window + span - 1))
        results: Tensor | None = None
        for first in range(0, columns.shape[1], size):
            batch = columns[:, first : first + size]
            result = function(before[batch[0]], after[batch[1]], batch[2])
            # A list of small results would fragment the memory between the large temporary tensors.
            results = result.new_empty(columns.shape[1], *result.shape[1:]) if results is None else results
            results[first : first + size] = result
        assert results is not None
        return results[inverse]

    def window_distribution(self, before: Tensor, after: Tensor) -> Tensor:
        """Return the joint distribution of the tokens of one window.

        Args:
            before: Forward messages (n, states) before the window.
            after: Backward messages (n, states) after the window.

        Returns:
            Probabilities (n, V^W) float64.
        """
        n = len(before)
        weights = before[:, :, None] + self.log_weights.view(self.states, self.vocab)
        return (weights.view(n, self.vocab, self.states) + after[:, None, :]).view(n, -1).softmax(1)
