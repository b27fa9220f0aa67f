"""Fields of a JSON text, and the values that a grammar allows in one of them."""

import json
import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple

import numpy as np
from llguidance import LLMatcher

from trialogue.verifiers.languages.language_verifier import Invalid
from trialogue.verifiers.languages.vocabularies import byte_tokenizer, make_matcher

_SPACE = re.compile(r"[ \t\r\n]*")
_DELIMITER = re.compile(r"[ \t\r\n]*[,\]}]")
_DECODER = JSONDecoder()


class JsonField(NamedTuple):
    """Place of a string, number, boolean or null in a JSON text.

    Attributes:
        pointer: JSON Pointer (RFC 6901) of the value.
        start: Index of the first byte of the value.
        stop: Index of the first byte after the value.
        end: Index of the first byte after the delimiter that follows the value. Equal to `stop` if the value is the
            whole text.
    """

    pointer: str
    start: int
    stop: int
    end: int


def find_fields(text: bytes) -> list[JsonField]:
    """Return all strings, numbers, booleans and nulls of a JSON text, in the order of the text.

    Args:
        text: JSON text in UTF-8.

    Raises:
        Invalid: If `text` is not valid JSON.
    """
    try:
        json.loads(text)
        # One character per byte, so that indices of characters are indices of bytes.
        characters = text.decode("latin-1")
        return list(_scan(characters, _skip_space(characters, 0), ""))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"it is not valid JSON: {error}") from None


def _scan(text: str, start: int, pointer: str) -> Iterator[JsonField]:
    """Yield the fields of the value that begins at `start`."""
    if text[start] not in "{[":
        _, stop = _DECODER.raw_decode(text, start)
        delimiter = _DELIMITER.match(text, stop)
        yield JsonField(pointer, start, stop, delimiter.end() if delimiter else stop)
        return
    is_object, place, index = text[start] == "{", _skip_space(text, start + 1), 0
    while text[place] not in "}]":
        name = str(index)
        if is_object:
            _, stop = _DECODER.raw_decode(text, place)
            name = json.loads(text[place:stop].encode("latin-1"))
            place = _skip_space(text, _skip_space(text, stop) + 1)
        name = name.replace("~", "~0").replace("/", "~1")
        yield from _scan(text, place, f"{pointer}/{name}")
        _, place = _DECODER.raw_decode(text, place)
        place = _skip_space(text, place)
        if text[place] == ",":
            place = _skip_space(text, place + 1)
        index += 1


def _skip_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match is not None
    return match.end()


def open_field(text: str) -> str | None:
    """Return the JSON Pointer of the innermost field that the beginning of a JSON text has not finished.

    Args:
        text: Beginning of a JSON text, for example one that a token limit ended.

    Returns:
        The pointer, which is empty for the whole text. None if the text is not the beginning of an object or list.
    """
    path, place = list[str | int](), 0
    starts = list[str]()
    while place < len(text):
        character = text[place]
        if character in "{[":
            starts.append(character)
            path.append("" if character == "{" else 0)
        elif character in "}]":
            if not starts:
                return None
            starts.pop()
            path.pop()
        elif character == "," and starts and starts[-1] == "[":
            path[-1] = int(path[-1]) + 1
        elif character == '"':
            try:
                value, end = _DECODER.raw_decode(text, place)
            except JSONDecodeError:
                break
            if starts and starts[-1] == "{" and text[end : end + 1].strip() in (":", ""):
                path[-1] = value
            place = end - 1
        place += 1
    names = (str(name).replace("~", "~0").replace("/", "~1") for name in path)
    return "".join(f"/{name}" for name in names) if starts else None


def split_value(text: bytes) -> tuple[bytes, bytes] | None:
    """Split a text into a JSON value, and the space and delimiter after it.

    Args:
        text: Text that begins with a JSON value. Anything may follow the delimiter.

    Returns:
        The value and the delimiter, or None if the value is not followed by a delimiter.
    """
    characters = text.decode("latin-1")
    try:
        _, stop = _DECODER.raw_decode(characters)
    except (JSONDecodeError, RecursionError):
        return None
    delimiter = _DELIMITER.match(characters, stop)
    return None if delimiter is None else (text[:stop], text[stop : delimiter.end()])


class FieldGrammar:
    """The continuations of the text before a field of a JSON text that a grammar allows.

    Args:
        grammar: Grammar of complete texts in llguidance's dialect of Lark.
        before: Text before the value.
        delimiter: Bytes after the value, up to and including the delimiter. Empty if the value ends the text.

    Raises:
        Invalid: If no text of the grammar begins with `before`.
    """

    def __init__(self, grammar: str, before: bytes, delimiter: bytes) -> None:
        self._start, self._delimiter = make_matcher(byte_tokenizer(), grammar), delimiter
        if self._start.try_consume_tokens(list(before)) < len(before):
            raise Invalid("no text of the grammar begins like this")

    def allows(self, value: bytes) -> bool:
        """Return whether the grammar allows a JSON value, followed by the delimiter."""
        matcher = self._start.deep_copy()
        return matcher.try_consume_tokens(list(value)) == len(value) and self._ends(matcher)

    def values(self, limit: int) -> list[bytes] | None:
        """Return all values that the grammar allows, followed by the delimiter.

        Args:
            limit: Maximum number of values, and of beginnings of values of the same length.

        Returns:
            JSON texts of the values, or None if there are more than `limit`.
        """
        found, level = list[bytes](), [(b"", self._start)]
        while level:
            following = list[tuple[bytes, LLMatcher]]()
            for written, matcher in level:
                is_complete = _is_value(written)
                if is_complete and self._ends(matcher):
                    found.append(written)
                # Only a number can be continued to another value.
                if is_complete and written[-1:] not in b"0123456789":
                    continue
                following += self._continue(written, matcher)
                if len(following) + len(found) > limit:
                    return None
            level = following
        return found

    def _ends(self, matcher: LLMatcher) -> bool:
        """Return whether the value may end here. A matcher that nothing can continue has stopped."""
        if not self._delimiter:
            return bool(matcher.is_accepting())
        return bool(matcher.validate_tokens(list(self._delimiter)) == len(self._delimiter))

    def _continue(self, written: bytes, matcher: LLMatcher) -> Iterator[tuple[bytes, LLMatcher]]:
        """Yield all beginnings of values that are one byte longer."""
        if matcher.is_stopped():
            return
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        for byte in np.flatnonzero(bits[:255]).tolist():
            # Numbers end at the delimiter, and white space before a value belongs to the text before it.
            if chr(byte) in " \t\r\n,]}" and not _is_inside(written):
                continue
            longer = matcher.deep_copy()
            longer.consume_token(byte)
            yield written + bytes([byte]), longer


def _is_value(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_inside(written: bytes) -> bool:
    """Return whether an incomplete value is a string, list or object."""
    return written[:1] in (b'"', b"[", b"{")
