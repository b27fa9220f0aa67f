"""Compiled functions that sample Dyck strings, parse them and match their brackets.

Token 2t opens a bracket of type t, and token 2t + 1 closes it. The depth is the number of open brackets.
`ceiling[i]` is the depth at which the token at position i must be a closing bracket. A next-token
distribution is a table with one row per `State`, one column for each type of opening bracket, and a last
column for closing the innermost bracket. All functions process the rows from `first` (inclusive) to `last`
(exclusive).
"""

import enum

import numpy as np

from trialogue.compilation import compiled
from trialogue.randomness import GAMMA, mix, stream_key


class State(enum.IntEnum):
    """State of the bracket parser. It determines the distribution of the next token."""

    OUTSIDE = 0
    """No bracket is open, so the next token must open one."""
    FREE = 1
    """The next token may open another bracket or close the innermost one."""
    FORCED = 2
    """The depth is at its ceiling, so the next token must close the innermost bracket."""
    STOPPED = 3
    """No token may follow, because the string has an error or is complete."""


class DyckError(enum.IntEnum):
    """Kind of the first error in a string.

    The parser in the thesis has the same kinds and START_INCORRECT, which cannot occur here because strings
    contain no start token.
    """

    NONE = 0
    """The string has no error."""
    END_INCORRECT = 1
    """The string is too short or too long."""
    MAX_STACK_DEPTH_EXCEEDED = 2
    """A bracket opens at the maximum depth."""
    STACK_DEPTH_EXCEEDS_REMAINING_LENGTH = 3
    """A bracket opens although all remaining tokens are needed to close the open brackets."""
    STACK_UNDERFLOW = 4
    """A bracket closes although none is open."""
    INCORRECT_CLOSING_BRACKET = 5
    """A closing bracket has a different type from the innermost open bracket."""
    NOT_A_BRACKET = 6
    """A token is neither a bracket nor the end of sequence."""


# Numba promotes a mix of int64 and uint64 to float64, so every operand is converted.
_1 = np.uint64(1)


def cumulative_thresholds(distribution: np.ndarray) -> np.ndarray:
    """Convert next-token probabilities to cumulative integer thresholds, for sampling with integer random numbers.

    To sample a column, count the thresholds of the row that are at most a random 63-bit number.

    Args:
        distribution: Probabilities (states, types + 1) float64. Each row sums to 1.

    Returns:
        Thresholds (states, types) uint64, in units of 2^-63.
    """
    cumulative = np.minimum(distribution.cumsum(1)[:, :-1], 1.0)
    return np.asarray(np.ldexp(cumulative, 63), np.uint64)


@compiled
def _state(depth: int, ceiling: int) -> int:
    """Return the value of the `State` at a depth, because Numba before 0.68 does not index with members of an enum."""
    if depth == 0:
        return State.OUTSIDE.value
    return State.FORCED.value if depth == ceiling else State.FREE.value


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
    """Sample random bracket strings with lengths from `shortest` to `longest`, right-padded with zeros.

    Row i uses the random stream `stream_key(seed, i)`. Number 0 of the stream determines the length, and number j + 1
    determines the token at position j.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        seed: Random seed.
        shortest: Minimum length.
        longest: Maximum length.
        ceiling: Depth (longest,) at which the token at each position must be a closing bracket.
        thresholds: Next-token distributions (states, types), from `cumulative_thresholds`.
        tokens: Output tokens (n, longest) int64.
        lengths: Output lengths (n,) int64.
    """
    types = thresholds.shape[1]
    choices = np.uint64(longest - shortest + 1)
    open_threshold = thresholds[State.FREE.value, types - 1]
    # stack[depth] is the innermost open type. Slot 0 makes the access below valid at depth 0 without a branch.
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
            # Branches on random bits are mispredicted half of the time, so the code below has none.
            opens = outside | ((depth != ceiling[i]) & (bits < open_threshold))
            cumulative = thresholds[State.OUTSIDE.value if outside else State.FREE.value]
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
    log_distribution: np.ndarray,
    position: np.ndarray,
    error: np.ndarray,
    state: np.ndarray,
    top: np.ndarray,
    log_prob: np.ndarray,
) -> None:
    """Parse bracket strings: find the first error of each, its state at the end, and its log-probability.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Tokens (n, width) int64.
        lengths: Lengths (n,) int64.
        eos: End-of-sequence token, or -1 for none.
        max_depth: Maximum number of open brackets.
        ceiling: Depth (length,) at which the token at each position must be a closing bracket. Its size is the length
            of the strings of the language.
        log_distribution: Log-probabilities (states, types + 1) of the next token.
        position: Output position (n,) of the first error, or -1.
        error: Output `DyckError` (n,) of the first error.
        state: Output `State` (n,) after the string.
        top: Output type (n,) of the innermost open bracket, or -1 if no bracket is open.
        log_prob: Output log-probability (n,) of the string as a prefix, -inf after an error.
    """
    types = log_distribution.shape[1] - 1
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
                if before != State.FORCED.value:
                    total += log_distribution[before, kind]
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
                total += log_distribution[_state(depth, ceiling[i]), types]
                depth -= 1
            if wrong != DyckError.NONE:
                at, total = i, -np.inf
                break
        following = lengths[row]
        stopped = wrong != DyckError.NONE or following >= length
        position[row] = at
        error[row] = wrong
        state[row] = State.STOPPED.value if stopped else _state(depth, ceiling[following])
        top[row] = stack[depth - 1] if depth > 0 else -1
        log_prob[row] = total


@compiled
def match(first: int, last: int, tokens: np.ndarray, partner: np.ndarray) -> None:
    """Find the matching bracket of each token.

    A closing bracket removes the innermost open bracket from the stack. The two match if their types are equal.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Brackets (n, width) int64.
        partner: Output positions (n, width) of the matching brackets, or -1 if a bracket has none.
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
def find_innermost_types(first: int, last: int, tokens: np.ndarray, top: np.ndarray) -> None:
    """Find the type of the innermost open bracket after each token.

    A closing bracket of any type removes the innermost open bracket from the stack.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        tokens: Brackets (n, width) int64.
        top: Output types (n, width), or -1 if no bracket is open.
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
def draw_word_lengths(
    first: int, last: int, seed: np.uint64, threshold: np.uint64, tokens: np.ndarray, lengths: np.ndarray
) -> None:
    """Sample the length of the first word of each row.

    After each token that closes the last open bracket, the word ends with probability `threshold` / 2^63.

    Args:
        first: First row.
        last: End of the rows, exclusive.
        seed: Random seed.
        threshold: Probability of an end in units of 2^-63.
        tokens: Brackets (n, width) int64.
        lengths: Output lengths (n,), or -1 if the word does not end within the row.
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
