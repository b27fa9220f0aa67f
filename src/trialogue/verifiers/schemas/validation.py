"""Values of JSON texts, exact and validated: by the jsonschema library, with formats as grammars have them."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from datetime import date
from decimal import Context, Decimal
from functools import cache
from typing import Any, NamedTuple

import regex
from jsonschema import FormatChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from llguidance import LLMatcher
from referencing.jsonschema import EMPTY_REGISTRY

from trialogue.verifiers.language_verifier import Invalid, NotValid
from trialogue.verifiers.schemas.dialects import SchemaMistake
from trialogue.verifiers.schemas.keywords import Subschema, pointer
from trialogue.verifiers.schemas.patterns import for_python
from trialogue.verifiers.vocabularies import END_OF_BYTES, byte_tokenizer, matcher_of

_DIGITS = Context(prec=1000)
PATTERN_SECONDS = 0.1
"""How long a pattern may search a string: some would take for ever, and whoever wrote the schema chose them"""
SECONDS = 1.0
"""How long the processor may hold a text against a schema, for the same reason"""
_WITH_A_DAY, _DAY = ("date", "date-time"), len("YYYY-MM-DD")


class _Underway(NamedTuple):
    """A text that is held against a schema until a `deadline` of its thread's own time: all `keys` of its objects."""

    deadline: float
    keys: frozenset[str]


_NOTHING = _Underway(math.inf, frozenset())
_UNDERWAY = ContextVar("text under validation", default=_NOTHING)


def validation(
    schema: dict[str, Any], found: Sequence[Subschema], dialect: type[Validator]
) -> Callable[[str], Any]:
    """The function from a JSON text to its value, which raises `Invalid` where it is not valid under `schema`.

    `found` are the schemas in `schema`, JSON values. Numbers are compared as they are written, not as floats; a text
    that has a key twice in an object is no value. A format counts where a grammar knows it or jsonschema checks it.
    A text whose validation takes longer than a second is not valid.
    Raises `SchemaMistake` for a pattern that is no regular expression.
    """
    nodes = {id(one.schema): one for one in found}
    exact = _exact(schema, nodes)
    formats = {one.schema.get("format") for one in found}
    checker = _checker(frozenset(name for name in formats if isinstance(name, str)))
    validator = _exact_validator(dialect)(exact, registry=EMPTY_REGISTRY, format_checker=checker)

    def value(text: str) -> Any:
        began = time.thread_time()
        try:
            given = exact_value(text)
            underway = _UNDERWAY.set(_Underway(began + SECONDS, frozenset(_keys(given))))
            try:
                error = next(validator.iter_errors(given), None)
            finally:
                _UNDERWAY.reset(underway)
        except RecursionError:
            raise Invalid("it is nested too deeply") from None
        if error is not None:
            raise NotValid(f"{pointer(error.absolute_path)}: {error.message}")
        return json.loads(text)

    return value


@cache
def in_grammars(name: str) -> bool:
    """Whether grammars know the format `name`."""
    return not _of_format(name).is_error()


def is_checked(name: str) -> bool:
    """Whether strings are held against the format `name` at all."""
    return in_grammars(name) or name in FormatChecker.checkers


@cache
def _of_format(name: str) -> LLMatcher:
    schema = json.dumps({"type": "string", "format": name})
    return matcher_of(byte_tokenizer(), f"start: %json {schema}")


def _checker(names: frozenset[str]) -> FormatChecker:
    checker = FormatChecker([name for name in names if name in FormatChecker.checkers])
    for name in names:
        if in_grammars(name):
            checker.checks(name)(_grammar_check(name))
    return checker


def _grammar_check(name: str) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        if not isinstance(value, str):
            return True
        tokens = [*json.dumps(value, ensure_ascii=False).encode(errors="replace"), END_OF_BYTES]
        written = bool(_of_format(name).deep_copy().validate_tokens(tokens) == len(tokens))
        return written and (name not in _WITH_A_DAY or _is_day(value[:_DAY]))

    return check


def _is_day(text: str) -> bool:
    """Whether a calendar has the day YYYY-MM-DD: grammars give February 29 days in every year."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def exact_value(text: str) -> Any:
    """The value of a JSON text, its fractions as decimals; raises `Invalid` where it is none, or has a key twice."""
    try:
        return json.loads(
            text, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_of_different_keys
        )
    except (ValueError, ArithmeticError) as error:
        raise error if isinstance(error, Invalid) else Invalid(f"it is no JSON: {error}") from None


def _no_number(name: str) -> None:
    raise Invalid(f"{name} is no number of JSON")


def _of_different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise Invalid(f"the key {twice!r} is there twice")
    return value


def _exact(value: Any, nodes: dict[int, Subschema]) -> Any:
    """`value` with numbers as they are written, patterns as Python reads them, and one dialect for all."""
    if isinstance(value, list):
        return [_exact(one, nodes) for one in value]
    if isinstance(value, float):
        return Decimal(repr(value))
    if not isinstance(value, dict):
        return value
    exact = {key: _exact(one, nodes) for key, one in value.items()}
    if id(value) in nodes:
        path = nodes[id(value)].path
        # A schema that names its dialect would be validated by a validator without exact numbers.
        exact.pop("$schema", None)
        if isinstance(exact.get("pattern"), str):
            exact["pattern"] = _python_pattern(exact["pattern"], (*path, "pattern"))
        if isinstance(exact.get("patternProperties"), dict):
            exact["patternProperties"] = _Patterns(exact["patternProperties"], (*path, "patternProperties"))
    return exact


class _Patterns(dict[str, Any]):
    """The schemas of `patternProperties` by patterns of Python, where references find them by those of ECMAScript."""

    def __init__(self, schemas: dict[str, Any], path: Sequence[str]) -> None:
        super().__init__()
        self._schemas = schemas
        for pattern, schema in schemas.items():
            python = _python_pattern(pattern, (*path, pattern))
            while python in self or (python in schemas and python != pattern):
                python += "(?:)"
            self[python] = schema

    def __iter__(self) -> Iterator[str]:
        """Patterns that find what these do in the keys of the text under validation, each at once.

        jsonschema iterates where it looks for keys that are evaluated, and searches without a limit of time.
        """
        keys = _UNDERWAY.get().keys
        found = (key for key in keys if any(_matches(pattern, key) for pattern, _ in self.items()))
        return (rf"\A{re.escape(key)}\Z" for key in found)

    def __missing__(self, pattern: str) -> Any:
        return self._schemas[pattern]


def _python_pattern(pattern: str, path: Sequence[str]) -> str:
    python = for_python(pattern)
    try:
        regex.compile(python)
    except (regex.error, RecursionError) as error:
        raise SchemaMistake(f"{pointer(path)}: {pattern!r} is no regular expression: {error}") from None
    return python


def _keys(value: Any) -> Iterator[str]:
    """The keys of all objects in `value`."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


@cache
def _exact_validator(dialect: type[Validator]) -> type[Validator]:
    """`dialect` for numbers with a fraction that are decimals."""
    whole = dialect.TYPE_CHECKER.is_type(1.0, "integer")

    def is_integer(_: object, value: object) -> bool:
        if isinstance(value, Decimal):
            return whole and value == value.to_integral_value()
        return isinstance(value, int) and not isinstance(value, bool)

    keywords = {
        **dialect.VALIDATORS,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
    }
    return extend(
        dialect,
        validators={name: _in_time(keyword) for name, keyword in keywords.items()},
        type_checker=dialect.TYPE_CHECKER.redefine("integer", is_integer),
    )


def _in_time(keyword: Callable[..., Any]) -> Callable[..., Any]:
    """`keyword` as a validator asks it; it raises `NotValid` where the time for the text is over."""

    def asked(*arguments: Any) -> Any:
        _require_time()
        return keyword(*arguments)

    return asked


def _require_time() -> float:
    """The seconds that are left for the text; raises `NotValid` where none are."""
    left = _UNDERWAY.get().deadline - time.thread_time()
    if left <= 0:
        raise NotValid(f"it takes longer than {SECONDS:g} s to validate")
    return left


def _multiple_of(validator: Validator, factor: Any, value: Any, _: object) -> Iterator[ValidationError]:
    if not validator.is_type(value, "number"):
        return
    try:
        multiple = not _DIGITS.remainder(Decimal(value), Decimal(factor))
    except ArithmeticError:
        multiple = False
    if not multiple:
        yield ValidationError(f"{value} is no multiple of {factor}")


def _matches(pattern: str, text: str) -> bool:
    """Whether `text` has a match of `pattern`; raises `NotValid` where that is not known in time."""
    timeout = min(PATTERN_SECONDS, _require_time())
    try:
        return regex.search(pattern, text, timeout=timeout) is not None
    except TimeoutError:
        raise NotValid(f"{pattern!r} takes longer than {PATTERN_SECONDS} s to search {text!r}") from None


def _pattern(validator: Validator, pattern: str, value: Any, _: object) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not _matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _: object) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    for pattern, schema in patterns.items():
        for key, one in value.items():
            if _matches(pattern, key):
                yield from validator.descend(one, schema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, schema: Any, value: Any, parent: dict[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    named, patterns = parent.get("properties", {}), parent.get("patternProperties", {})
    for key, one in value.items():
        if key not in named and not any(_matches(pattern, key) for pattern, _ in patterns.items()):
            if schema is False:
                yield ValidationError(f"no property may be called {key!r}")
            else:
                yield from validator.descend(one, schema, path=key)
