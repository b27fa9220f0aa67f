"""Patterns of ECMAScript, as JSON schemas have them, in the syntax of other engines."""

import re
from collections.abc import Iterable, Iterator, Sequence

_Ranges = Sequence[tuple[int, int]]
_LAST = 0x10FFFF
_SETS: dict[str, _Ranges] = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": (
        *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
        *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
    ),
}
"""The characters of the classes, in order."""
_WORD = "[0-9A-Z_a-z]"
_AT_BOUNDARY = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_ELSEWHERE = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"

_ESCAPE = (
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}"
    r"|x[0-9a-fA-F]{2}|c[a-zA-Z]|[pP]\{[^{}]*\}|k<\w+>|[1-9][0-9]*|.)"
)
_TOKENS = re.compile(
    rf"(?P<escape>{_ESCAPE})|(?P<class>\[\^?)|(?P<possessive>(?:[*+?]|\{{[0-9]+(?:,[0-9]*)?\}})\+)"
    r"|(?P<quantifier>\{[0-9]+(?:,[0-9]*)?\})"
    r"|(?P<named>\(\?<(?![=!]))|(?P<other>.)",
    re.DOTALL,
)
_IN_CLASS = re.compile(rf"{_ESCAPE}|.", re.DOTALL)
_CONTROLS = {"0": 0x00, "t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_PUNCTUATION = frozenset("^$\\.*+?()[]{}|/-&~")


def for_grammars(pattern: str) -> str:
    """`pattern` with what means something else to Rust's regex crate written so that it means what it says."""
    return _translated(pattern, "$")


def for_python(pattern: str) -> str:
    """`pattern` for Python's engines, whose classes have characters of all scripts and whose $ lets a line end."""
    return _translated(pattern, r"\Z")


def _translated(pattern: str, end: str) -> str:
    parts, place = list[str](), 0
    while place < len(pattern):
        match = _TOKENS.match(pattern, place)
        assert match is not None
        found, place = match[0], match.end()
        if match.lastgroup == "class":
            body, place = _class(pattern, place)
            parts.append(_whole_class(body, found == "[^"))
        elif match.lastgroup == "escape":
            parts.append(_escaped(found))
        elif match.lastgroup == "possessive":
            parts.append(f"{found[:-1]}**")  # nothing to repeat, as ECMAScript has it, for Python too
        elif match.lastgroup == "named":
            parts.append("(?P<")
        elif match.lastgroup == "other" and found in "${}]":
            parts.append(end if found == "$" else f"\\{found}")
        else:
            parts.append(found)
    return "".join(parts)


def _whole_class(body: str | None, negated: bool) -> str:
    if body is None:
        return "["  # nothing ends it, and no engine takes it
    if not body:
        return f"[{_span(0, _LAST)}]" if negated else "(?!)"
    return f"[{'^' if negated else ''}{body}]"


def _class(pattern: str, place: int) -> tuple[str | None, int]:
    """What stands in the class whose inside begins at `place`, None where nothing ends it; and the place behind it."""
    parts = list[str]()
    while place < len(pattern):
        if pattern[place] == "]":
            return "".join(parts), place + 1
        part, place, single = _member(pattern, place)
        parts.append(part)
        if single and pattern[place : place + 1] == "-" and pattern[place + 1 : place + 2] not in ("", "]"):
            last, place, single = _member(pattern, place + 1)
            # Beside a set a hyphen stands for itself.
            parts += ["-" if single else r"\-", last]
    return None, place


def _member(pattern: str, place: int) -> tuple[str, int, bool]:
    """A member of a class, the place behind it, and whether it is a single character."""
    match = _IN_CLASS.match(pattern, place)
    assert match is not None
    found = match[0]
    if found[0] != "\\":
        return f"\\{found}" if found in _PUNCTUATION else found, match.end(), True
    name = found[1:2]
    if name.lower() in _SETS:
        ranges = _SETS[name.lower()]
        return _spans(ranges if name.islower() else _others(ranges)), match.end(), False
    if name == "b":
        return r"\x08", match.end(), True
    return _character(found), match.end(), name not in ("p", "P") or len(found) == 2


def _escaped(found: str) -> str:
    """An escape outside of classes."""
    name = found[1:2]
    if name.lower() in _SETS:
        return f"[{'' if name.islower() else '^'}{_spans(_SETS[name.lower()])}]"
    if name in ("b", "B"):
        return _AT_BOUNDARY if name == "b" else _ELSEWHERE
    if name == "k" and len(found) > 2:
        return f"(?P={found[3:-1]})"
    return _character(found)


def _character(found: str) -> str:
    """The escape of a character; those of properties and numbers mean the same everywhere."""
    name, rest = found[1:2], found[2:]
    if (name in ("p", "P") and rest) or name in tuple("123456789"):
        return found
    if name in ("x", "u") and rest:
        high, _, low = rest.partition(r"\u")
        if low:
            return _written(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
        return _written(int(rest.strip("{}"), 16))
    if name == "c" and rest:
        return _written(ord(rest) % 32)
    return _written(_CONTROLS[name] if name in _CONTROLS else ord(name))


def _written(code: int) -> str:
    if code > _LAST or 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04x}"  # half a character, which no text has
    character = chr(code)
    if character in _PUNCTUATION:
        return f"\\{character}"
    return character if code >= 0x20 and code != 0x7F else f"\\x{code:02x}"


def _others(ranges: _Ranges) -> Iterator[tuple[int, int]]:
    start = 0
    for first, last in ranges:
        if start < first:
            yield start, first - 1
        start = last + 1
    yield start, _LAST


def _spans(ranges: Iterable[tuple[int, int]]) -> str:
    return "".join(_span(first, last) for first, last in ranges)


def _span(first: int, last: int) -> str:
    return _written(first) if first == last else f"{_written(first)}-{_written(last)}"
