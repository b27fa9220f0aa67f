"""Formats of strings in a JSON Schema."""

import copy
import json
import re
from collections.abc import Callable
from datetime import date
from functools import cache, partial
from typing import Any

from jsonschema import FormatChecker
from jsonschema.protocols import Validator
from llguidance import LLMatcher

from trialogue.verifiers.languages.vocabularies import END_OF_BYTES, byte_tokenizer, make_matcher

_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_ESCAPE = "%[0-9A-Fa-f]{2}"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:"
_POINTER = "(?:/(?:[^/~]|~[01])*)*"


def _address() -> str:
    """Return the pattern of an IPv6 address of RFC 3986."""
    group, byte = "[0-9A-Fa-f]{1,4}", "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    last = rf"(?:{group}:{group}|{byte}(?:\.{byte}){{3}})"
    forms = [f"(?:{group}:){{6}}{last}"]
    for groups in range(5, -1, -1):
        forms.append(f"{_leading(group, 5 - groups)}::(?:{group}:){{{groups}}}{last}")
    forms += [f"{_leading(group, 6)}::{group}", f"{_leading(group, 7)}::"]
    return f"(?:{'|'.join(forms)})"


def _leading(group: str, most: int) -> str:
    return f"(?:(?:{group}:){{0,{most - 1}}}{group})?" if most else ""


def _references(letters: str, private: str) -> tuple[str, str]:
    """Return the patterns of a URI and of a relative reference (RFC 3986), or of those with `letters` (RFC 3987)."""

    def characters(more: str) -> str:
        return f"(?:[A-Za-z0-9._~!$&'()*+,;={letters}{more}-]|{_ESCAPE})"

    segment, no_colon, rest = characters(":@"), characters("@"), characters(":@/?")
    future = r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
    host = rf"(?:\[(?:{_address()}|{future})\]|{characters('')}*)"
    network = f"//(?:{characters(':')}*@)?{host}(?::[0-9]*)?(?:/{segment}*)*"
    absolute = f"/(?:{segment}+(?:/{segment}*)*)?"
    end = f"(?:\\?{characters(':@/?' + private)}*)?(?:#{rest}*)?"
    uri = f"{_SCHEME}(?:{network}|{absolute}|{segment}+(?:/{segment}*)*)?{end}"
    return uri, f"(?:{network}|{absolute}|{no_colon}+(?:/{segment}*)*)?{end}"


def _template() -> str:
    """Return the pattern of a URI template of RFC 6570."""
    letter = f"(?:[A-Za-z0-9_]|{_ESCAPE})"
    variable = rf"{letter}+(?:\.{letter}+)*(?::[1-9][0-9]{{0,3}}|\*)?"
    expression = rf"\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}}"
    return rf"(?:[!#$&'-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|{_ESCAPE}|{expression})*"


_URI, _RELATIVE_URI = _references("", "")
_IRI, _RELATIVE_IRI = _references(_UCS, _PRIVATE)
PATTERNS = {
    name: f"^(?:{pattern})$"
    for name, pattern in (
        ("json-pointer", _POINTER),
        ("relative-json-pointer", f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})"),
        ("uri", _URI),
        ("uri-reference", f"{_URI}|{_RELATIVE_URI}"),
        ("iri", _IRI),
        ("iri-reference", f"{_IRI}|{_RELATIVE_IRI}"),
        ("uri-template", _template()),
    )
}
"""Regular expressions of formats that llguidance or the jsonschema library does not define."""
_GRAMMAR_FORMATS = ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
"""Formats for which llguidance is stricter than the jsonschema library without optional packages."""

_LEAP_SECOND = re.compile(r"(\d\d):(\d\d):60(?:\.\d+)?(?:[zZ]|([+-]\d\d):(\d\d))$", re.ASCII)
_DAY = len("YYYY-MM-DD")
_MINUTES_OF_DAY = 24 * 60
_MAX_HOSTNAME = 253

Check = Callable[[Any], bool]


@cache
def format_checker(dialect: type[Validator]) -> FormatChecker:
    """Return an object that checks the keyword `format` of a JSON Schema draft.

    In addition to the formats of the jsonschema library, it checks the formats in `PATTERNS`, the calendar date of a
    `date-time`, leap seconds, the length of a `hostname`, and its labels that begin with "xn--". Some formats must also
    match the grammar of the library llguidance.

    Args:
        dialect: Validator class of the draft.
    """
    checker = copy.copy(dialect.FORMAT_CHECKER)
    checks: dict[str, Check] = {
        "date-time": lambda text: _has_valid_date(text) and _has_valid_second(text),
        "time": _has_valid_second,
        # Without the package idna, labels are not checked.
        "hostname": lambda name: (
            len(name) <= _MAX_HOSTNAME
            and ("xn--" not in name.lower() or checker.conforms(name, "idn-hostname"))
        ),
        **{name: partial(_matches, pattern) for name, pattern in PATTERNS.items()},
    }
    additional = {name: (_for_strings(check), ValueError) for name, check in checks.items()}
    checker.checkers = {**additional, **checker.checkers}
    for name in _GRAMMAR_FORMATS:
        check, errors = checker.checkers.get(name, (_accepts_all, ()))
        matches, caught = (
            _for_strings(partial(_matches_grammar, name)),
            errors if isinstance(errors, tuple) else (errors,),
        )
        checker.checkers[name] = _both(matches, check), (ValueError, *caught)
    return checker


def _accepts_all(_: object) -> bool:
    return True


def _both(first: Check, second: Check) -> Check:
    return lambda value: first(value) and second(value)


@cache
def _grammar(name: str) -> LLMatcher:
    return make_matcher(byte_tokenizer(), f"start: %json {json.dumps({'type': 'string', 'format': name})}")


def _matches_grammar(name: str, text: str) -> bool:
    """Return whether a text matches the grammar of the format `name` (such as "date"), which token masks use too."""
    # Validation checks this as well, so that it accepts no text that the masks forbid.
    data = [*json.dumps(text, ensure_ascii=False).encode(), END_OF_BYTES]
    return bool(_grammar(name).deep_copy().validate_tokens(data) == len(data))


def _for_strings(check: Check) -> Check:
    return lambda value: not isinstance(value, str) or check(value)


def _matches(pattern: str, text: str) -> bool:
    # Compiling all patterns takes 0.2 s, and `re` caches those that are used.
    return re.fullmatch(pattern, text) is not None


def _has_valid_date(text: str) -> bool:
    return date.fromisoformat(text[:_DAY]) is not None


def _has_valid_second(text: str) -> bool:
    """Return whether a time has no leap second, or one in the last minute of a day in UTC."""
    leap = _LEAP_SECOND.search(text)
    if leap is None:
        return True
    hour, minute, offset, offset_minutes = leap.groups("0")
    minutes = int(hour) * 60 + int(minute) - int(offset) * 60
    minutes -= int(offset_minutes) * (-1 if offset.startswith("-") else 1)
    return (minutes + 1) % _MINUTES_OF_DAY == 0
