"""Deterministic automata of regular languages, which read the tokens of a vocabulary.

An automaton of bytes is composed with the bytes of each token. Many tokens change the states in the same way, so there
are few classes of tokens.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from trialogue.errors import InputError
from trialogue.verifiers.languages.regular_expressions import NONE, TOO_LARGE, RegularExpressions

_MAX_STATES = 10_000
NEVER = np.iinfo(np.int32).max
"""Number of tokens of the shortest completion if there is none."""
_MAX_ENTRIES = 2**25
"""Limit on the number of states times the number of token classes, at 4 bytes per entry."""

Moves = NDArray[np.int32]
Flags = NDArray[np.bool_]


class ByteAutomaton(NamedTuple):
    """Deterministic automaton that reads the bytes of a text. The first state is the start, and the last one is dead.

    Attributes:
        moves: State (states, 256) int32 after each byte.
        accepting: Whether a text may end in each state, (states,) bool.
    """

    moves: Moves
    accepting: Flags

    @classmethod
    def from_pattern(cls, pattern: str) -> "ByteAutomaton":
        """Create an automaton that accepts the texts that a regular expression matches in full.

        Args:
            pattern: Regular expression that llguidance accepts.

        Raises:
            InputError: If the pattern has the flag x, or the automaton is too large.
        """
        expressions = RegularExpressions()
        queue = [expressions.parse(pattern)]
        states, groups = {queue[0]: 0}, expressions.distinguished_bytes()
        rows = []
        for expression in queue:
            row = np.full(256, -1, dtype=np.int32)
            for group in groups:
                following = expressions.derivative(expression, group[0])
                if following != NONE:
                    if following not in states:
                        states[following] = len(queue)
                        queue.append(following)
                    row[group] = states[following]
            rows.append(row)
            if len(queue) > _MAX_STATES:
                raise InputError("regex", pattern, TOO_LARGE)
        moves = np.stack([*rows, np.full(256, -1, dtype=np.int32)])
        accepting = [*map(expressions.is_nullable, queue), False]
        return cls(np.where(moves < 0, len(queue), moves), np.array(accepting))


class TokenAutomaton(NamedTuple):
    """Deterministic automaton that reads tokens. The first state is the start, and the last one follows the end.

    Attributes:
        token_class: Class (vocab,) int64 of each token. Tokens of a class lead to the same states.
        moves: State (classes, states) int32 after a token of each class.
        accepting: Whether a text may end in each state, (states,) bool.
        reachable: Matrix (states, states) float32, whose entry (s, t) is positive if a token leads from s to t.
    """

    token_class: NDArray[np.int64]
    moves: Moves
    accepting: Flags
    reachable: Any

    @classmethod
    def compile(
        cls, automaton: ByteAutomaton, token_bytes: Sequence[bytes], eos: int | None
    ) -> "TokenAutomaton":
        """Compose an automaton of bytes with the tokens of a vocabulary.

        Args:
            automaton: The automaton of bytes.
            token_bytes: Bytes of each token. Tokens without bytes are not accepted.
            eos: Token that ends a text, after which all tokens are accepted (default: none).

        Raises:
            InputError: If the automaton is too large.
        """
        token_class, columns = _token_classes(automaton.moves, token_bytes)
        size = len(automaton.moves)
        ended = np.append(np.where(automaton.accepting, size, size - 1), size)
        moves = np.vstack((np.column_stack((columns, np.full(len(columns), size))), ended)).astype(np.int32)
        if eos is not None:
            token_class[eos] = len(columns)
        source = np.broadcast_to(np.arange(size + 1), moves.shape)
        # The class of the end is not used without a token for it.
        used = slice(None if eos is not None else -1)
        pairs = np.unique(source[used].astype(np.int64) * (size + 1) + moves[used])
        edges = np.ones(len(pairs), np.float32), (pairs // (size + 1), pairs % (size + 1))
        accepting = np.append(automaton.accepting, True)
        return cls(token_class, moves, accepting, csr_array(edges, shape=(size + 1, size + 1)))

    def shortest_completions(self) -> NDArray[np.int32]:
        """Return the smallest number of tokens (states,) int32 after which a text may end, `NEVER` if it cannot."""
        counts = np.full(len(self.accepting), NEVER, np.int32)
        found, count = self.accepting.copy(), 0
        while found.any():
            counts[found] = count
            found = (self.reachable @ found > 0) & (counts == NEVER)
            count += 1
        return counts


def _token_classes(moves: Moves, token_bytes: Sequence[bytes]) -> tuple[NDArray[np.int64], Moves]:
    """Group the tokens that lead to the same state from each state.

    Args:
        moves: State (states, 256) after each byte.
        token_bytes: Bytes of each token.

    Returns:
        Class (vocab,) of each token, and the state (classes, states) to which its tokens lead from each state.

    Raises:
        InputError: If there are too many classes and states.
    """
    size = len(moves)
    byte_moves, byte_class = np.unique(moves, axis=1, return_inverse=True)
    byte_moves, byte_class = np.ascontiguousarray(byte_moves.T), byte_class.ravel()
    lengths = np.array([len(data) for data in token_bytes])
    table = np.zeros((len(token_bytes), lengths.max(initial=1)), np.uint8)
    for row, data in zip(table, token_bytes, strict=True):
        row[: len(data)] = np.frombuffer(data, np.uint8)
    # Class 0 contains prefixes of tokens that change nothing, and class 1 those after which no text is accepted.
    columns = [np.arange(size, dtype=np.int32), np.full(size, size - 1, np.int32)]
    known = {column.tobytes(): place for place, column in enumerate(columns)}
    found = np.where(lengths > 0, 0, 1)
    for place in range(table.shape[1]):
        tokens = np.flatnonzero((lengths > place) & (found != 1))
        # Tokens with equal classes before a byte and with equal classes of the byte remain in one class.
        pairs, rows = np.unique(
            found[tokens] * len(byte_moves) + byte_class[table[tokens, place]], return_inverse=True
        )
        following = np.empty(len(pairs), np.int64)
        for number, pair in enumerate(pairs.tolist()):
            before, byte = divmod(pair, len(byte_moves))
            column = byte_moves[byte][columns[before]]
            following[number] = known.setdefault(column.tobytes(), len(columns))
            if following[number] == len(columns):
                columns.append(column)
        found[tokens] = following[rows]
        if len(columns) * size > _MAX_ENTRIES:
            raise InputError("verifier", f"{size} states", TOO_LARGE)
    used, token_class = np.unique(found, return_inverse=True)
    return token_class.ravel(), np.stack([columns[place] for place in used.tolist()])
