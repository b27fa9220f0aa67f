"""Parser of Python literals that decides whether an unfinished text can still become a given literal.

It uses neither `eval` nor the parser of Python, and does not recurse, so its cost is linear in the text. It accepts a
subset of literals on one line: decimal numbers without exponent, strings without prefix (escapes: backslash, quotes, n,
r, t), True, False, None, and lists and tuples of them. Two literals are equal if their canonical spellings are equal: 1
and 1.0 are equal, 1 and True are not.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

_CONSTANTS = ("True", "False", "None")
_CLOSERS = {"[": "]", "(": ")"}
_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}
_NUMBER = re.compile(r"(-?)([0-9]*)(\.?)([0-9]*)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CHARACTERS = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\[\\'\"nrt])*", re.ASCII) for quote in ("'", '"')}
_CHARACTER = re.compile(r"\\?.")
_OPERATORS = frozenset("+-*/%@&|^~<>=!.{}([")


class Fault(Enum):
    """Reason why a text cannot become a Python literal."""

    UNKNOWN_NAME = "a name that is not True, False or None"
    NOT_A_LITERAL = "an operator, a call, or a spelling that is not read"
    SYNTAX = "no Python expression"
    ENDED = "the line ends before the literal does"


class Lexeme(NamedTuple):
    """A token of a Python literal: a number, string, constant, bracket or comma.

    Attributes:
        kind: "number", "string", "constant", or the bracket or comma itself.
        value: Canonical spelling, or the characters of a string.
        written: Spelling in the text.
        start: Start position.
        open: Whether the text ends here, so that the token may still continue.
    """

    kind: str
    value: str
    written: str
    start: int
    open: bool = False

    @property
    def stop(self) -> int:
        """Position after the last character."""
        return self.start + len(self.written)


class ParsedLiteral(NamedTuple):
    """Result of parsing one literal.

    Attributes:
        lexemes: The tokens read so far.
        stop: End position, or None if the literal is unfinished or invalid.
        fault: Reason why the text cannot become a literal, or None.
        position: Position of the fault.
    """

    lexemes: tuple[Lexeme, ...]
    stop: int | None = None
    fault: Fault | None = None
    position: int = -1


class _InvalidLiteral(Exception):
    """Raised if the text cannot become a literal from `position` on.

    `begun` is the interrupted lexeme, if any.
    """

    def __init__(self, fault: Fault, position: int, begun: Lexeme | None = None) -> None:
        super().__init__(fault, position, begun)
        self.fault, self.position, self.begun = fault, position, begun


def skip_blanks(text: str, position: int) -> int:
    """Return the first position from `position` on whose character is neither a space nor a tab."""
    while position < len(text) and text[position] in " \t":
        position += 1
    return position


def find_fault(character: str) -> Fault:
    """Return the reason why a literal cannot be followed by a character that is not blank."""
    if character == "\n":
        return Fault.ENDED
    return Fault.NOT_A_LITERAL if character in _OPERATORS else Fault.SYNTAX


def read_literal(text: str, start: int = 0) -> ParsedLiteral:
    """Parse a Python literal up to its end or the end of the text.

    A number or constant at the end of the text may continue. Append a newline if the text is complete.

    Args:
        text: Text with the literal.
        start: Position at which the literal, or blanks before it, begin.
    """
    lexemes: list[Lexeme] = []
    brackets: list[str] = []
    sizes: list[int] = []  # values in each open bracket
    position = start
    try:
        while True:
            position = skip_blanks(text, position)
            if position == len(text):
                return ParsedLiteral(tuple(lexemes))
            try:
                lexeme = _read_lexeme(text, position)
            except _InvalidLiteral as stop:
                if stop.begun is not None:
                    _check_place(stop.begun, lexemes, brackets, sizes)
                    lexemes.append(stop.begun)
                raise
            _check_place(lexeme, lexemes, brackets, sizes)
            position = lexeme.stop
            if lexeme.kind in _CLOSERS:
                brackets.append(lexeme.kind)
                sizes.append(0)
            elif lexeme.kind in _CLOSERS.values():
                brackets.pop()
                sizes.pop()
                if lexemes[-1].kind == ",":
                    lexemes.pop()
            lexemes.append(lexeme)
            if lexeme.open:
                return ParsedLiteral(tuple(lexemes))
            if lexeme.kind not in _CLOSERS and lexeme.kind != ",":
                if not brackets:
                    return ParsedLiteral(tuple(lexemes), position)
                sizes[-1] += 1
    except _InvalidLiteral as stop:
        return ParsedLiteral(tuple(lexemes), None, stop.fault, stop.position)


def _check_place(
    lexeme: Lexeme, lexemes: Sequence[Lexeme], brackets: Sequence[str], sizes: Sequence[int]
) -> None:
    """Raise `_InvalidLiteral` if `lexeme` cannot follow the tokens `lexemes`."""
    kind, before = lexeme.kind, lexemes[-1].kind if lexemes else ""
    after_value = before not in ("", ",", *_CLOSERS)
    if kind == ",":
        allowed = after_value
    elif kind in _CLOSERS.values():
        allowed = bool(brackets) and _CLOSERS[brackets[-1]] == kind
        if allowed and kind == ")" and after_value and sizes[-1] == 1:
            raise _InvalidLiteral(
                Fault.NOT_A_LITERAL, lexeme.start
            )  # parentheses around a single value do not create a tuple
    else:
        allowed = not after_value
    if not allowed:
        raise _InvalidLiteral(Fault.NOT_A_LITERAL if kind in _CLOSERS else Fault.SYNTAX, lexeme.start)


def _read_lexeme(text: str, start: int) -> Lexeme:
    first = text[start]
    if first in "[](),":
        return Lexeme(first, first, first, start)
    if first in _CHARACTERS:
        return _read_string(text, start)
    if first in "-.0123456789":
        return _read_number(text, start)
    if _WORD.match(first):
        return _read_constant(text, start)
    raise _InvalidLiteral(find_fault(first), start)


def _read_string(text: str, start: int) -> Lexeme:
    match = _CHARACTERS[text[start]].match(text, start + 1)
    assert match is not None
    pieces = _CHARACTER.findall(match[0])
    value = "".join(_ESCAPES[piece[1]] if len(piece) == 2 else piece for piece in pieces)
    following = text[match.end() : match.end() + 2]
    if following in ("", "\\"):
        return Lexeme("string", value, text[start:], start, open=True)
    if following[0] in "\\\n":
        escape = following[0] == "\\"
        fault, position = Fault.NOT_A_LITERAL if escape else Fault.ENDED, match.end() + escape
        raise _InvalidLiteral(
            fault, position, Lexeme("string", value, text[start:position], start, open=True)
        )
    return Lexeme("string", value, text[start : match.end() + 1], start)


def _read_number(text: str, start: int) -> Lexeme:
    match = _NUMBER.match(text, start)
    assert match is not None
    sign, whole, _, decimals = match.groups()
    if len(whole) > 1 and whole[0] == "0":
        zero = Lexeme("number", sign + "0", sign + "0", start, open=True)
        raise _InvalidLiteral(Fault.NOT_A_LITERAL, zero.stop, zero)
    ends = match.end() == len(text)
    if not whole and not decimals and not ends:
        fault = Fault.NOT_A_LITERAL if text[match.end()] != "\n" else Fault.ENDED
        raise _InvalidLiteral(fault, match.end(), Lexeme("number", match[0], match[0], start, open=True))
    kept = decimals.rstrip("0")
    value = sign + (whole or "0") + ("." + kept if kept else "")
    return Lexeme("number", value, match[0], start, open=ends)


def _read_constant(text: str, start: int) -> Lexeme:
    match = _WORD.match(text, start)
    assert match is not None
    word, ends = match[0], match.end() == len(text)
    if word in _CONSTANTS or (ends and any(constant.startswith(word) for constant in _CONSTANTS)):
        return Lexeme("constant", word, word, start, open=ends)
    begun = word[: max(measure_shared_prefix(word, constant) for constant in _CONSTANTS)]
    lexeme = Lexeme("constant", begun, begun, start, open=True) if begun else None
    raise _InvalidLiteral(Fault.UNKNOWN_NAME, start + len(begun), lexeme)


def measure_shared_prefix(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the length of the common prefix of two sequences."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )


def find_first_difference(lexemes: Sequence[Lexeme], wanted: Sequence[Lexeme]) -> int | None:
    """Return the first position at which a partial literal can no longer become a given literal.

    Args:
        lexemes: Tokens of the partial literal. The last one may be incomplete.
        wanted: Tokens of the given literal.

    Returns:
        The position, or None if the partial literal can still become the given one.
    """
    place = 0
    for lexeme in lexemes:
        target = wanted[place]
        if lexeme.kind == "," and target.kind in _CLOSERS.values():
            continue  # a comma may precede the closing bracket
        if lexeme.kind != target.kind:
            return lexeme.start
        position = _find_difference(lexeme, target)
        if position is not None:
            return position
        place += 1
    return None


def _find_difference(lexeme: Lexeme, target: Lexeme) -> int | None:
    """Return the position where `lexeme` can no longer equal `target` of the same kind."""
    if not lexeme.open and lexeme.value == target.value:
        return None
    if lexeme.kind == "number":
        shared = _measure_shared_number(lexeme.written, target.value)
    elif lexeme.kind == "string":
        shared = 1 + _measure_shared_string(lexeme.written[1:], target.value)
    else:
        shared = measure_shared_prefix(lexeme.written, target.value)
    return None if lexeme.open and shared == len(lexeme.written) else lexeme.start + shared


def _measure_shared_number(written: str, target: str) -> int:
    """Return the length of the longest prefix of `written` that can be continued to a number equal to `target`."""
    match, wanted = _NUMBER.match(written), _NUMBER.match(target)
    assert match is not None
    assert wanted is not None
    if match[1] != wanted[1]:
        return 0
    if match[2] != wanted[2] and not (match[3] and not match[2] and wanted[2] == "0"):
        return match.start(2) + measure_shared_prefix(match[2], wanted[2])
    decimals = wanted[4].ljust(len(match[4]), "0")
    return match.start(4) + measure_shared_prefix(match[4], decimals)


def _measure_shared_string(written: str, target: str) -> int:
    """Return the length of the longest prefix of `written` that can be continued to a literal of `target`.

    `written` is the text of an unfinished string literal after its opening quote. It may contain escapes. `target` is
    the value of a string.
    """
    shared = 0
    pieces = _CHARACTER.findall(written)
    for place, piece in enumerate(pieces):
        pending = piece == "\\"
        if place == len(target):
            return shared
        wanted = target[place]
        if pending:
            return shared + (wanted in _ESCAPES.values())
        if (_ESCAPES[piece[1]] if len(piece) == 2 else piece) != wanted:
            # A backslash by itself could still have become the wanted character.
            return shared + (len(piece) == 2 and wanted in _ESCAPES.values())
        shared += len(piece)
    return shared
