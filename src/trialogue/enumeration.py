"""Enumeration of all random outcomes of a computation, with their probabilities."""

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled
from trialogue.randomness import Choose, no_choice

Result = TypeVar("Result")

_NONE = -1
_ROWS_AT_ONCE = 1 << 16


class Enumeration:
    """Replacement for a random function `choose` that visits all possible sequences of random choices.

    The code that calls `choose` is run once for every branch. A branch is a sequence of choices with positive
    probability, and its weight is this probability. Several states, for example the states of a Markov chain, can be
    enumerated in one batch. Each state then has a group of `members` rows, whose choices belong to the same branch.

    Args:
        groups: Number of states.
        members: Number of rows per state.
        smallest: Lower bound of the weight of a possible branch (default: 0, the weight may underflow).
    """

    def __init__(self, groups: int, members: int, smallest: float = 0.0) -> None:
        self._groups, self._members, self._smallest = groups, members, smallest
        # The chosen option and the next possible option, by group, call and member.
        self._taken = torch.full((groups, 0, members), _NONE)
        self._next = torch.full((groups, 0, members), _NONE)
        self._calls = torch.zeros(groups, dtype=torch.int64)
        self._log_weight = torch.zeros(groups, dtype=torch.float64)

    def choose(self, log_weights: Tensor, rows: Tensor) -> Tensor:
        """Return the option of each row in the current branch, instead of a random one.

        The probability of the option is multiplied into the weight of the branch. The arguments are those of a random
        `choose`: log-weights (n, k) of k options, and row indices (n,).
        """
        device, rows = rows.device, rows.cpu()
        group, member = rows // self._members, rows % self._members
        distribution = log_weights.double().log_softmax(-1).cpu()
        if bool(torch.isnan(distribution).any()):
            raise no_choice()
        call = self._calls[group]
        self._make_room(int(call.max()) + 1 if len(call) else 0)
        possible, taken = distribution > -math.inf, self._taken[group, call, member]
        # `argmax` gives the first of equal values.
        index = torch.where(taken == _NONE, possible.byte().argmax(-1), taken)
        others = possible & (torch.arange(distribution.shape[-1]) > index[:, None])
        self._taken[group, call, member] = index
        self._next[group, call, member] = torch.where(others.any(-1), others.byte().argmax(-1), _NONE)
        self._calls[group] = call + 1
        self._log_weight.index_add_(0, group, distribution.gather(1, index[:, None])[:, 0])
        return index.to(device)

    def branches(self, run: Callable[[], Result]) -> Iterator[tuple[Tensor, Result]]:
        """Call `run` until all branches of all groups are visited.

        Yields:
            The weights (groups,) float64 of the branches, 0 for groups without further branches, and the result of
            `run`.
        """
        left = torch.ones(self._groups, dtype=torch.bool)
        while bool(left.any()):
            self._calls.zero_()
            self._log_weight.zero_()
            self._next.fill_(_NONE)
            result = run()
            yield self._log_weight.exp().clamp_min(self._smallest) * left, result
            left &= self._advance()

    def _make_room(self, calls: int) -> None:
        missing = calls - self._taken.shape[1]
        if missing > 0:
            room = torch.full((self._groups, missing, self._members), _NONE)
            self._taken, self._next = torch.cat((self._taken, room), 1), torch.cat((self._next, room), 1)

    def _advance(self) -> Tensor:
        """Go to the next branch.

        Returns whether each group (groups,) has a further branch.
        """
        taken, following = self._taken.flatten(1), self._next.flatten(1)
        turns = following != _NONE
        found = turns.any(1)
        if not taken.shape[1]:
            return found
        last = taken.shape[1] - 1 - turns.flip(1).byte().argmax(1)
        rows = found.nonzero()[:, 0]
        turned = taken[rows].masked_fill(torch.arange(taken.shape[1]) > last[rows, None], _NONE)
        turned[torch.arange(len(rows)), last[rows]] = following[rows, last[rows]]
        self._taken[rows] = turned.view(len(rows), *self._taken.shape[1:])
        return found


def enumerate_outcomes(
    run: Callable[[Tensor, Choose], Result], rows: int
) -> Iterator[tuple[Tensor, Tensor, Result]]:
    """Visit all outcomes of a random computation on independent rows, many outcomes in one call.

    In contrast to `Enumeration`, the computation must accept any selection of rows, also with repetitions. A row that
    makes a choice takes its first possible option, and a copy of the row is run again for each other option.

    Args:
        run: Function of row numbers (n,) int64 and of a `choose` for a batch of these n rows.
        rows: Number of rows.

    Yields:
        Row numbers (n,) int64, the probability (n,) float64 of the outcome of each of them, and the result of `run`.
        The probabilities of all outcomes of a row sum to one.
    """
    waiting = [(torch.arange(rows), torch.full((rows, 0), _NONE))]
    while waiting:
        source, tapes = waiting.pop()
        if len(source) > _ROWS_AT_ONCE:
            waiting.append((source[_ROWS_AT_ONCE:], tapes[_ROWS_AT_ONCE:]))
            source, tapes = source[:_ROWS_AT_ONCE], tapes[:_ROWS_AT_ONCE]
        batch = _Tapes(tapes)
        result = run(source, batch.choose)
        yield source, batch.log_weight.exp(), result
        parent, tapes = batch.untaken()
        if len(parent):
            waiting.append((source[parent], tapes))


class _Tapes:
    """Prescribed choices of the rows of a batch (tapes). A row takes first options after the end of its tape."""

    def __init__(self, tapes: Tensor) -> None:
        self._tapes = tapes
        self._calls = torch.zeros(len(tapes), dtype=torch.int64)
        self.log_weight = torch.zeros(len(tapes), dtype=torch.float64)
        # Row, call and option of each option that a row did not take.
        self._untaken: list[tuple[Tensor, Tensor, Tensor]] = []

    def choose(self, log_weights: Tensor, rows: Tensor) -> Tensor:
        """Return one option for each row, with the arguments of a random `choose`."""
        device, rows = rows.device, rows.cpu()
        call = self._calls[rows]
        if len(rows) and int(call.max()) >= self._tapes.shape[1]:
            self._tapes = torch.nn.functional.pad(self._tapes, (0, 1), value=_NONE)
        index = torch.empty(len(rows), dtype=torch.int64)
        others = torch.zeros(log_weights.shape, dtype=torch.bool)
        weights = log_weights.double().cpu().contiguous()
        arrays = (weights, rows, self._tapes, self._calls, self.log_weight, index, others)
        if not _follow(*(array.numpy() for array in arrays)):
            raise no_choice()
        place, option = others.nonzero().unbind(1)
        self._untaken.append((rows[place], call[place], option))
        return index.to(device)

    def untaken(self) -> tuple[Tensor, Tensor]:
        """Return the row (n,) and the tape (n, calls) of each outcome that has not been visited."""
        if not self._untaken:
            return self._calls[:0], self._tapes[:0]
        row, call, option = (torch.cat(column) for column in zip(*self._untaken, strict=True))
        later = torch.arange(self._tapes.shape[1]) > call[:, None]
        tapes = self._tapes[row].masked_fill(later, _NONE)
        return row, tapes.scatter(1, call[:, None], option[:, None])


@compiled
def _follow(
    log_weights: NDArray[np.float64],
    rows: NDArray[np.int64],
    tapes: NDArray[np.int64],
    calls: NDArray[np.int64],
    log_weight: NDArray[np.float64],
    index: NDArray[np.int64],
    others: NDArray[np.bool_],
) -> bool:
    """Take the next option on the tape of each row, or the first possible option after the end of the tape.

    Args:
        log_weights: Log-weights (n, k) of the options.
        rows: Indices (n,) of the rows, which differ.
        tapes: Choices (m, calls) of all rows. The taken options are added.
        calls: Number (m,) of choices that each row has made. Incremented.
        log_weight: Log-probability (m,) of the choices. That of the taken options is added.
        index: Result (n,): the taken options.
        others: Result (n, k), which is False. All other possible options become True if the tape has ended.

    Returns:
        Whether each row has a possible option.
    """
    options = log_weights.shape[1]
    for place, row in enumerate(rows):
        largest, total, taken = -np.inf, 0.0, tapes[row, calls[row]]
        for option in range(options):
            largest = max(largest, log_weights[place, option])
        for option in range(options):
            total += np.exp(log_weights[place, option] - largest)
        if not (total > 0 and largest > -np.inf):
            return False
        if taken == _NONE:
            for option in range(options):
                if log_weights[place, option] > -np.inf:
                    others[place, option] = taken != _NONE
                    taken = option if taken == _NONE else taken
        index[place] = tapes[row, calls[row]] = taken
        calls[row] += 1
        log_weight[row] += log_weights[place, taken] - largest - np.log(total)
    return True
