"""Compiled single passes over Dyck strings: draw them, parse them, pair their brackets.

Token 2t opens a bracket of type t and token 2t+1 closes it. A distribution is a table with one row per `State` and one
column per type that may be opened, plus a last column for closing the innermost bracket.
`ceiling[i]` is the depth at which the token at position i must close.
"""

import enum

import numpy as np

from trialogue.compilation import compiled
from trialogue.randomness import GAMMA, mix, stream_key


class State(enum.IntEnum):
    """What decides the distribution of the next token."""

    OUTSIDE = 0
    """No bracket is open: one must be opened."""
    FREE = 1
    """Open another bracket or close the innermost one."""
    FORCED = 2
    """The depth is at its ceiling: the innermost bracket must be closed."""
    STOPPED = 3
    """No token may follow: the string has an error, or it is complete."""


class DyckError(enum.IntEnum):
    """What is wrong with the first wrong token of a string.

    The taxonomy of the thesis' parser without START_INCORRECT: the token that begins a sequence is internal
    to the models here, so that no string can begin wrongly.
    """

    NONE = 0
    END_INCORRECT = 1
    """The string ends before its length, or goes on beyond it."""
    MAX_STACK_DEPTH_EXCEEDED = 2
    """A bracket opens at the largest depth allowed."""
    STACK_DEPTH_EXCEEDS_REMAINING_LENGTH = 3
    """A bracket opens where every remaining token is needed to close the brackets already open."""
    STACK_UNDERFLOW = 4
    """A bracket closes where none is open."""
    INCORRECT_CLOSING_BRACKET = 5
    """A bracket closes with another type than the innermost open one."""
    NOT_A_BRACKET = 6
    """A token that is neither a bracket nor the end of sequence."""


# Mixed with int64, uint64 would become float64: every operand is converted.
_1 = np.uint64(1)


def thresholds(distribution: np.ndarray) -> np.ndarray:
    """Cumulative distribution in units of 2^-63: of a row, a 63-bit number picks as many as it is not below.

    `distribution` (states, types + 1) float64; returns (states, types) uint64. Accurate to the rounding of float64.
    """
    cumulative = np.minimum(distribution.cumsum(1)[:, :-1], 1.0)
    return np.asarray(np.ldexp(cumulative, 63), np.uint64)


@compiled
def _state(depth: int, ceiling: int) -> State:
    if depth == 0:
        return State.OUTSIDE
    return State.FORCED if depth == ceiling else State.FREE


@compiled
def draw(
    first: int,
    last: int,
    seed: np.uint64,
    shortest: int,
    longest: int,
    ceiling: np.ndarray,
    thresholds: np.ndarray,
    tokens: np.ndarray,
    lengths: np.ndarray,
) -> None:
    """Draw rows first..last of `tokens` (n, longest) int64, of `shortest` to `longest` tokens, then zeros.

    Row i uses numbers 0, 1, ... of the stream of `randomness.stream_key` for `seed` and i: number 0 for
    the length, kept in `lengths` (n,), number j+1 for the token at position j.
    """
    types = thresholds.shape[1]
    choices = np.uint64(longest - shortest + 1)
    may_open = thresholds[State.FREE, types - 1]
    # stack[depth] is the innermost open type; slot 0 lets the reading below go without a branch.
    stack = np.zeros(longest + 2, np.int64)
    for row in range(first, last):
        key = stream_key(seed, np.uint64(row))
        length = shortest + np.int64(mix(key) % choices)
        depth = 0
        string = tokens[row]
        for i in range(length):
            key += GAMMA
            bits = mix(key) >> _1
            outside = depth == 0
            # Branches here would be mispredicted every other token and take half of the time.
            opens = outside | ((depth != ceiling[i]) & (bits < may_open))
            cumulative = thresholds[State.OUTSIDE if outside else State.FREE]
            kind = 0
            for t in range(types - 1):
                kind += 1 if bits >= cumulative[t] else 0
            top = stack[depth]
            stack[depth + 1] = kind
            string[i] = 2 * kind if opens else 2 * top + 1
            depth += 1 if opens else -1
        string[length:] = 0
        lengths[row] = length


@compiled
def scan(
    first: int,
    last: int,
    tokens: np.ndarray,
    lengths: np.ndarray,
    eos: int,
    max_depth: int,
    ceiling: np.ndarray,
    log_law: np.ndarray,
    position: np.ndarray,
    error: np.ndarray,
    state: np.ndarray,
    top: np.ndarray,
    log_prob: np.ndarray,
) -> None:
    """Parse rows first..last of `tokens` (n, width) int64 up to `lengths` (n,) or to the first error.

    `eos` is -1 where there is no such token. Writes, each (n,): `position` of the first error or -1; which
    `error`; the `state` that follows; the type on `top` of the stack or -1; `log_prob`, -inf after an error.
    """
    types = log_law.shape[1] - 1
    length = ceiling.size
    stack = np.empty(length + 1, np.int64)
    for row in range(first, last):
        depth, total, wrong, at = 0, 0.0, DyckError.NONE, -1
        for i in range(lengths[row]):
            token = tokens[row, i]
            kind = token >> 1
            is_end = token >= 0 and token == eos
            if is_end or i >= length:
                if not is_end or i != length:
                    wrong = DyckError.END_INCORRECT
            elif token < 0 or kind >= types:
                wrong = DyckError.NOT_A_BRACKET
            elif token & 1 == 0:
                before = _state(depth, ceiling[i])
                if before != State.FORCED:
                    total += log_law[before, kind]
                    stack[depth] = kind
                    depth += 1
                elif depth == max_depth:
                    wrong = DyckError.MAX_STACK_DEPTH_EXCEEDED
                else:
                    wrong = DyckError.STACK_DEPTH_EXCEEDS_REMAINING_LENGTH
            elif depth == 0:
                wrong = DyckError.STACK_UNDERFLOW
            elif stack[depth - 1] != kind:
                wrong = DyckError.INCORRECT_CLOSING_BRACKET
            else:
                total += log_law[_state(depth, ceiling[i]), types]
                depth -= 1
            if wrong != DyckError.NONE:
                at, total = i, -np.inf
                break
        following = lengths[row]
        stopped = wrong != DyckError.NONE or following >= length
        position[row] = at
        error[row] = wrong
        state[row] = State.STOPPED if stopped else _state(depth, ceiling[following])
        top[row] = stack[depth - 1] if depth > 0 else -1
        log_prob[row] = total


@compiled
def match(first: int, last: int, tokens: np.ndarray, partner: np.ndarray) -> None:
    """Write the position of each bracket's partner into rows first..last of `partner` (n, width), else -1.

    A closing bracket takes the innermost open one off the stack; the two are partners if their types agree.
    """
    width = tokens.shape[1]
    stack = np.empty(width + 1, np.int64)
    for row in range(first, last):
        depth = 0
        for i in range(width):
            partner[row, i] = -1
            if tokens[row, i] & 1 == 0:
                stack[depth] = i
                depth += 1
            elif depth > 0:
                depth -= 1
                opener = stack[depth]
                if tokens[row, opener] >> 1 == tokens[row, i] >> 1:
                    partner[row, i] = opener
                    partner[row, opener] = i


@compiled
def innermost(first: int, last: int, tokens: np.ndarray, top: np.ndarray) -> None:
    """Write the type of the innermost bracket that is open after each token into `top` (n, width), -1 if none is.

    A closing bracket takes the innermost open one off the stack, whatever its type.
    """
    width = tokens.shape[1]
    stack = np.empty(width + 1, np.int64)
    for row in range(first, last):
        depth = 0
        for i in range(width):
            if tokens[row, i] & 1 == 0:
                stack[depth] = tokens[row, i] >> 1
                depth += 1
            elif depth > 0:
                depth -= 1
            top[row, i] = stack[depth - 1] if depth > 0 else -1


@compiled
def first_ends(
    first: int, last: int, seed: np.uint64, threshold: np.uint64, tokens: np.ndarray, lengths: np.ndarray
) -> None:
    """Write where rows first..last of `tokens` (n, width) end into `lengths` (n,), -1 where none of their ends comes.

    Wherever every bracket is closed a row ends with probability `threshold` / 2^63, by number j of its stream.
    """
    for row in range(first, last):
        key = stream_key(seed, np.uint64(row))
        depth = 0
        lengths[row] = -1
        for i in range(tokens.shape[1]):
            depth += 1 if tokens[row, i] & 1 == 0 else -1
            key += GAMMA
            if depth == 0 and (mix(key) >> _1) < threshold:
                lengths[row] = i + 1
                break
