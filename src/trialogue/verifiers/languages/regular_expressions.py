"""Derivatives of regular expressions by bytes (Brzozowski 1964), whose number is finite.

Only the structure of an expression is parsed here. llguidance lists the characters of each class, so that classes have
the meaning that they have in grammars.
"""

import re
from functools import cache
from typing import Any

from llguidance import LLMatcher, regex_to_lark

from trialogue.errors import InputError
from trialogue.verifiers.languages.vocabularies import (
    NO_FORCING,
    allowed_bytes,
    byte_tokenizer,
    make_matcher,
)

NONE, EMPTY = 0, 1
"""Expressions that match no text, and the empty text."""
_MAX_EXPRESSIONS = 200_000
_QUANTIFIER = re.compile(r"(?:([*+?])|\{\s*(\d*)\s*(,?)\s*(\d*)\s*\})\??")
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|([a-zA-Z-]*)(:|\))))?")
_ESCAPE = re.compile(
    r"\\(?:[pPxuU]\{[^}]*\}|[pP].|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)

Expression = int


class RegularExpressions:
    """Regular expressions over bytes, as integers. Equal integers are equal expressions.

    Args:
        field: Name of the option in error messages.
    """

    def __init__(self, field: str = "regex") -> None:
        self._field = field
        self._terms: list[tuple[Any, ...]] = [("none",), ("empty",)]
        self._known: dict[tuple[Any, ...], Expression] = {
            term: place for place, term in enumerate(self._terms)
        }
        self._nullable = [False, True]
        self._derivatives: dict[tuple[Expression, int], Expression] = {}

    def is_nullable(self, expression: Expression) -> bool:
        """Return whether an expression matches the empty text."""
        return self._nullable[expression]

    def derivative(self, expression: Expression, byte: int) -> Expression:
        """Return the expression of the texts that may follow a byte in the texts of `expression`."""
        key = expression, byte
        if key not in self._derivatives:
            self._derivatives[key] = self._derive(expression, byte)
        return self._derivatives[key]

    def _derive(self, expression: Expression, byte: int) -> Expression:
        kind, *parts = self._terms[expression]
        if kind == "bytes":
            return dict(parts[0]).get(byte, NONE)
        if kind == "any":
            return self.any_of(*(self.derivative(part, byte) for part in parts[0]))
        if kind == "repeat":
            part, least, most = parts
            rest = self.repeat(part, max(0, least - 1), None if most is None else most - 1)
            return self.concatenate(self.derivative(part, byte), rest)
        if kind == "concatenate":
            first, rest = parts
            found = self.concatenate(self.derivative(first, byte), rest)
            return self.any_of(found, self.derivative(rest, byte)) if self._nullable[first] else found
        return NONE

    def distinguished_bytes(self) -> list[list[int]]:
        """Return groups of bytes that lead to the same derivatives of all expressions so far."""
        terms = [dict(term[1]) for term in self._terms if term[0] == "bytes"]
        groups = dict[tuple[Expression, ...], list[int]]()
        for byte in range(256):
            groups.setdefault(tuple(term.get(byte, NONE) for term in terms), []).append(byte)
        return [*groups.values()]

    def bytes_then(self, following: dict[int, Expression]) -> Expression:
        """Return the expression that matches one of the given bytes, and then the expression of this byte."""
        return self._add(("bytes", tuple(sorted(following.items()))), False) if following else NONE

    def any_of(self, *expressions: Expression) -> Expression:
        """Return the alternatives of expressions."""
        parts = set[Expression]()
        for one in expressions:
            term = self._terms[one]
            parts |= term[1] if term[0] == "any" else {one} - {NONE}
        if len(parts) < 2:
            return next(iter(parts), NONE)
        return self._add(("any", frozenset(parts)), any(self._nullable[part] for part in parts))

    def concatenate(self, first: Expression, rest: Expression) -> Expression:
        """Return the expression that matches a text of `first` and then one of `rest`."""
        if NONE in (first, rest):
            return NONE
        if EMPTY in (first, rest):
            return rest if first == EMPTY else first
        term = self._terms[first]
        if term[0] == "concatenate":
            return self.concatenate(term[1], self.concatenate(term[2], rest))
        return self._add(("concatenate", first, rest), self._nullable[first] and self._nullable[rest])

    def repeat(self, part: Expression, least: int, most: int | None) -> Expression:
        """Return the expression that repeats `part` between `least` and `most` times (None: without limit)."""
        if most == 0 or part == EMPTY:
            return EMPTY
        if (least, most) == (1, 1):
            return part
        return self._add(("repeat", part, least, most), least == 0 or self._nullable[part])

    def _add(self, term: tuple[Any, ...], nullable: bool) -> Expression:
        if term not in self._known:
            if len(self._terms) == _MAX_EXPRESSIONS:
                raise InputError(self._field, "a large expression", TOO_LARGE)
            self._known[term] = len(self._terms)
            self._terms.append(term)
            self._nullable.append(nullable)
        return self._known[term]

    def parse(self, pattern: str) -> Expression:
        """Return the expression of a pattern.

        Args:
            pattern: Regular expression in the syntax of Rust's regex crate, which llguidance accepts.

        Raises:
            InputError: If the pattern has the flag x, or is too large.
        """
        found, place = self._alternatives(pattern, 0, ())
        assert place == len(pattern)
        return found

    def _alternatives(self, pattern: str, place: int, flags: tuple[str, ...]) -> tuple[Expression, int]:
        """Parse alternatives, which are separated by "|", up to a closing parenthesis or the end of the pattern.

        Args:
            pattern: The regular expression.
            place: Index of the first character of the alternatives.
            flags: Flags such as "i" that are set there.

        Returns:
            The parsed expression, and the index of the character after it.
        """
        found, parts = list[Expression](), list[Expression]()
        while place < len(pattern) and pattern[place] != ")":
            if pattern[place] == "|":
                found.append(self._joined(parts))
                parts, place = [], place + 1
                continue
            group = _GROUP.match(pattern, place)
            if group and group[2] == ")":
                flags, place = self._with_flags(flags, group[1]), group.end()
                continue
            if group:
                inner = self._with_flags(flags, group[1] or "")
                part, place = self._alternatives(pattern, group.end(), inner)
                place += 1
            else:
                start, place = place, _end_of_character(pattern, place)
                part = self._characters(pattern[start:place], flags)
            while quantifier := _QUANTIFIER.match(pattern, place):
                sign, least, comma, most = quantifier.groups()
                limits = _QUANTIFIERS.get(sign)
                if limits is None:
                    limits = int(least or 0), int(most) if most else None if comma else int(least)
                part, place = self.repeat(part, *limits), quantifier.end()
            parts.append(part)
        found.append(self._joined(parts))
        return self.any_of(*found), place

    def _joined(self, parts: list[Expression]) -> Expression:
        found = EMPTY
        for part in reversed(parts):
            found = self.concatenate(part, found)
        return found

    def _with_flags(self, flags: tuple[str, ...], added: str) -> tuple[str, ...]:
        if "x" in added:
            raise InputError(self._field, "(?x)", "write the expression without the flag x")
        return (*flags, added) if added else flags

    def _characters(self, written: str, flags: tuple[str, ...]) -> Expression:
        """Return the expression of a character or class as it is written in a pattern."""
        if len(written) == 1 and written != "." and not flags:
            return self._followed(written.encode())
        for flag in reversed(flags):
            written = f"(?{flag}:{written})"
        return self._from_tree(_characters(written))

    def _followed(self, data: bytes) -> Expression:
        found = EMPTY
        for byte in reversed(data):
            found = self.bytes_then({byte: found})
        return found

    def _from_tree(self, tree: Any) -> Expression:
        known = dict[int, Expression]()

        def convert(node: Any) -> Expression:
            if id(node) not in known:
                known[id(node)] = (
                    EMPTY if node == () else self.bytes_then({byte: convert(rest) for byte, rest in node})
                )
            return known[id(node)]

        return convert(tree)


TOO_LARGE = "its automaton is too large for masks. Use a shorter expression, or reject texts (--quota N)"


@cache
def _characters(written: str) -> Any:
    """Return the bytes of the characters of a class, as nested pairs of a byte and what follows. () is the end."""
    nodes = dict[Any, Any]()

    def explore(matcher: LLMatcher, left: int) -> Any:
        """Return the bytes that may follow, of which `left` are left in the character, or -1 before the first."""
        found = []
        for byte in allowed_bytes(matcher):
            # The first byte of a character in UTF-8 determines the number of its bytes.
            rest = left - 1 if left > 0 else (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
            if rest:
                longer = matcher.deep_copy()
                longer.consume_token(byte)
                found.append((byte, explore(longer, rest)))
            else:
                found.append((byte, ()))
        return nodes.setdefault(tuple((byte, id(following)) for byte, following in found), tuple(found))

    grammar = f"start: /{regex_to_lark(written, '')}/{NO_FORCING}"
    return explore(make_matcher(byte_tokenizer(), grammar), -1)


def _end_of_character(pattern: str, place: int) -> int:
    """Return the place after the character or class that begins at a place of a pattern."""
    if pattern[place] == "\\":
        found = _ESCAPE.match(pattern, place)
        assert found is not None
        return found.end()
    if pattern[place] != "[":
        return place + 1
    depth = 0
    while True:
        if pattern[place] == "[":
            depth += 1
            place += 1 + pattern.startswith("^", place + 1)
            place += pattern.startswith("]", place)  # A bracket in the first place is a character.
        elif pattern[place] == "]":
            depth -= 1
            place += 1
            if depth == 0:
                return place
        else:
            place += 2 if pattern[place] == "\\" else 1
