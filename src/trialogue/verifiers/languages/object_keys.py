"""Automaton of the keys of JSON objects, which finds the next tokens that complete a repeated key.

A grammar without counters cannot exclude repeated keys of objects with arbitrary keys, so that the validation would
reject the complete text. The automaton reads the same bytes as the grammar, and may rely on their JSON syntax.
"""

import json
import re
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from trialogue.models.tokenization import Tokenization

_STRING = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
_ESCAPES = re.compile(rb"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)
_STRUCTURE = re.compile(rb'["{}\[\],]')
_QUOTE, _COMMA, _BRACE = b'",{'
_CLOSE = b"}]"


class KeyState(NamedTuple):
    """State after the beginning of a JSON text in which no object repeats a key."""

    keys: tuple[frozenset[bytes] | None, ...] = ()
    """Keys of each open object, outermost first, without escape sequences. None for an open list."""
    begun: bytes | None = None
    """Beginning of the string that is open, as it is written. None outside of strings. Only a key is stored in full."""
    is_key: bool = False
    """Whether the string that is open, or the next one in the innermost object, is a key."""

    def advance(self, data: bytes) -> "KeyState | None":
        """Return the state after further bytes, or None if they complete a key that its object already has.

        Args:
            data: Bytes that continue the text. They need not end with a complete character.
        """
        keys, begun, is_key = self
        if begun == b"" and not is_key and b'"' not in data and b"\\" not in data:
            return self
        place = 0
        while place < len(data):
            if begun is None:
                found = _STRUCTURE.search(data, place)
                if found is None:
                    break
                place, byte = found.end(), data[found.start()]
                if byte == _QUOTE:
                    begun = b""
                elif byte == _COMMA:
                    is_key = bool(keys) and keys[-1] is not None
                elif byte in _CLOSE:
                    keys, is_key = keys[:-1], False
                else:
                    is_key = byte == _BRACE
                    keys = (*keys, frozenset() if is_key else None)
                continue
            # The string may end with the beginning of an escape sequence.
            found = _STRING.match(written := begun + data[place:])
            assert found is not None
            if (stop := found.end()) == len(written) or written[stop] != _QUOTE:
                begun = written if is_key else written[stop:]
                break
            place += stop - len(begun) + 1
            if is_key:
                key, used = unescape(written[:stop]), keys[-1]
                assert used is not None
                if key in used:
                    return None
                keys = (*keys[:-1], used | {key})
            begun, is_key = None, False
        return KeyState(keys, begun, is_key)


class RepeatedKeys:
    """Finds tokens that complete a repeated key.

    Args:
        tokenization: Tokenization of the language model.
    """

    def __init__(self, tokenization: Tokenization) -> None:
        self._bytes = tokenization.token_bytes
        quotes = [
            (token, data, count) for token, data in enumerate(self._bytes) if (count := data.count(b'"'))
        ]
        self._quoted, self._with_keys, self._closing_keys = (
            [token for token, _, count in quotes if count >= least] for least in (1, 2, 3)
        )
        self._endings = dict[bytes, list[int]]()
        for token, data, _ in quotes:
            found = _STRING.match(data)
            assert found is not None
            if data[found.end() : found.end() + 1] == b'"':
                self._endings.setdefault(unescape(data[: found.end()]), []).append(token)

    def after(self, state: KeyState, viable: bytes) -> list[int]:
        """Return the ids of tokens that the grammar allows and that would complete a key which the object already has.

        Args:
            state: State of the text so far.
            viable: Tokens that the grammar allows, as a bit mask with the lowest bit of a byte first.
        """
        size = 8 * len(viable)
        return [
            token
            for token in self._candidates(state)
            if token < size
            and viable[token >> 3] >> (token & 7) & 1
            and state.advance(self._bytes[token]) is None
        ]

    def _candidates(self, state: KeyState) -> list[int]:
        """Return all tokens that may complete a repeated key."""
        begun = state.begun
        if begun is None:
            return self._with_keys
        if not state.is_key:
            return self._closing_keys
        if b"\\" in begun:
            return self._quoted
        used, length = state.keys[-1] or (), len(begun)
        endings = (self._endings.get(key[length:], ()) for key in used if key.startswith(begun))
        return [*self._closing_keys, *chain.from_iterable(endings)]


repeated_keys = lru_cache(maxsize=4)(RepeatedKeys)


def unescape(written: bytes) -> bytes:
    """Replace the escape sequences of a JSON string.

    Args:
        written: String in UTF-8 as it is written, without quotation marks. It may begin or end inside a character.

    Returns:
        The string in UTF-8. An invalid escape sequence remains as it is.
    """
    return _ESCAPES.sub(_unescape, written) if b"\\" in written else written


def _unescape(found: re.Match[bytes]) -> bytes:
    try:
        text: str = json.loads(b'"' + found[0] + b'"')
    except ValueError:
        return found[0]
    return text.encode("utf-8", "surrogatepass")
