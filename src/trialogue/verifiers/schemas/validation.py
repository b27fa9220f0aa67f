"""Validation of complete JSON texts with the jsonschema library, exact decimal numbers and time limits."""

import json
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from decimal import Context, Decimal
from functools import cache
from typing import Any

import regex
from jsonschema import Draft7Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing.jsonschema import EMPTY_REGISTRY

from trialogue.errors import describe_error
from trialogue.verifiers.languages.language_verifier import Invalid, InvalidText
from trialogue.verifiers.schemas.dialects import SchemaError, iterate_subschemas
from trialogue.verifiers.schemas.formats import format_checker

_DIGITS = Context(prec=1000)
PATTERN_SECONDS = 0.1
"""Time limit in seconds for matching a pattern, because some patterns take exponential time."""
SECONDS = 1.0
"""CPU time limit in seconds for the validation of a text."""
_deadline: ContextVar[float] = ContextVar("deadline of the validation, in time of the thread")


def make_validator(schema: dict[str, Any], dialect: type[Validator]) -> Callable[[str], Any]:
    """Create a parser that validates JSON texts under a JSON Schema.

    Numbers are compared exactly, not as floats. An object with duplicate keys is not valid. If the validation of a text
    exceeds a time limit, the text is rejected.

    Args:
        schema: JSON Schema.
        dialect: Validator class of the schema's draft.

    Returns:
        Function from a JSON text to its value. It raises `Invalid` for a text that is not valid.

    Raises:
        SchemaError: If a pattern is not a regular expression, or the time limit cannot be enforced for the schema.
    """
    used = {key for one in iterate_subschemas(schema) for key in one}
    if {"patternProperties", "unevaluatedProperties"} <= used:
        # jsonschema matches these patterns itself, without a time limit.
        raise SchemaError("unevaluatedProperties cannot be enforced next to patternProperties")
    for one in iterate_subschemas(schema):
        patterns = [one.get("pattern"), *_names(one.get("patternProperties"))]
        for pattern in patterns:
            if isinstance(pattern, str):
                _require_pattern(pattern)
    exact = json.loads(json.dumps(schema), parse_float=Decimal)
    # With `$schema`, jsonschema would choose its own validator, which has no exact numbers.
    exact.pop("$schema", None)
    validator = _exact_validator(dialect)(
        exact, registry=EMPTY_REGISTRY, format_checker=format_checker(dialect)
    )

    def value(text: str) -> Any:
        token = _deadline.set(time.thread_time() + SECONDS)
        try:
            error = next(validator.iter_errors(parse_exactly(text)), None)
        except RecursionError:
            raise Invalid("it is nested too deeply") from None
        except Invalid:
            raise
        except Exception as fault:
            # Metaschemas do not check the target of a reference if it is under an unknown key.
            raise Invalid(f"the schema cannot be applied: {describe_error(fault)}") from None
        finally:
            _deadline.reset(token)
        if error is not None:
            raise InvalidText(f"{error.json_path}: {error.message}")
        return json.loads(text)

    return value


def parse_exactly(text: str) -> Any:
    """Parse a JSON text. Numbers with a fraction or an exponent become `Decimal` instead of float.

    Args:
        text: JSON text.

    Raises:
        Invalid: If `text` is not valid JSON or contains a duplicate key in an object.
    """
    try:
        return json.loads(
            text, parse_float=Decimal, parse_constant=_reject_constant, object_pairs_hook=_require_unique_keys
        )
    except (ValueError, ArithmeticError) as error:
        raise error if isinstance(error, Invalid) else Invalid(f"it is not valid JSON: {error}") from None


def _reject_constant(name: str) -> None:
    raise Invalid(f"{name} is not a JSON number")


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise Invalid(f"one of the keys {', '.join(value)} is duplicated")
    return value


def _names(value: Any) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _require_pattern(pattern: str) -> None:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError) as error:
        raise SchemaError(f"{pattern!r} is not a regular expression: {error}") from None


@cache
def _exact_validator(dialect: type[Validator]) -> type[Validator]:
    """Return the validator of a draft, extended to `Decimal` numbers and time limits."""
    is_float_integer = dialect.TYPE_CHECKER.is_type(1.0, "integer")

    def is_integer(_: object, value: object) -> bool:
        if isinstance(value, Decimal):
            return is_float_integer and value == value.to_integral_value()
        return isinstance(value, int) and not isinstance(value, bool)

    keywords = {
        # Drafts since 2019-09 replace this keyword, but recommend that it keeps its meaning.
        "dependencies": Draft7Validator.VALIDATORS["dependencies"],
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
    """Wrap the validator of a keyword so that it raises `InvalidText` after the time limit."""

    def checked(*arguments: Any) -> Any:
        _remaining_seconds()
        return keyword(*arguments)

    return checked


def _remaining_seconds() -> float:
    left = _deadline.get() - time.thread_time()
    if left <= 0:
        raise InvalidText(f"it takes longer than {SECONDS:g} s to validate")
    return left


def _multiple_of(validator: Validator, factor: Any, value: Any, _: object) -> Iterator[ValidationError]:
    if not validator.is_type(value, "number"):
        return
    try:
        multiple = not _DIGITS.remainder(Decimal(value), Decimal(factor))
    except ArithmeticError:
        multiple = False
    if not multiple:
        yield ValidationError(f"{value} is not a multiple of {factor}")


def _matches(pattern: str, text: str) -> bool:
    """Return whether `pattern` is found in `text`. Raise `InvalidText` if the search takes too long."""
    timeout = min(PATTERN_SECONDS, _remaining_seconds())
    try:
        return regex.search(pattern, text, timeout=timeout) is not None
    except TimeoutError:
        raise InvalidText(f"{pattern!r} takes longer than {PATTERN_SECONDS} s to search {text!r}") from None


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
        if key not in named and not any(_matches(pattern, key) for pattern in patterns):
            if schema is False:
                yield ValidationError(f"additional property {key!r} is not allowed")
            else:
                yield from validator.descend(one, schema, path=key)
