"""Grammars of JSON schemas: every valid text is in the grammar; keywords that it does not enforce are listed."""

import json
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

from jsonschema.protocols import Validator
from llguidance import LLMatcher

from trialogue.verifiers.schemas.dialects import KEYWORDS, SchemaMistake, identifier, subschemas
from trialogue.verifiers.vocabularies import byte_tokenizer, matcher_of

_PATTERNS = {"patternProperties", "additionalProperties"}
_REMEDIES = {
    "are not disjoint": _PATTERNS,
    "float range": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "min/maxProperties": {"minProperties", "maxProperties"},
}
"""Keywords to leave to the validation, by what llguidance reports."""
_CIRCULAR = "circular references"
_SETS = re.compile(r"\[[^\]]*(?:\[|&&|--|~~)")
_TENTH = Decimal("0.1")


class SchemaGrammar(NamedTuple):
    """A schema as llguidance compiles it, and what it does not enforce."""

    text: str
    """The schema for llguidance, as JSON text."""
    unenforced: set[str]
    """Keywords that the grammar does not enforce, or not fully."""
    unknown_formats: set[str]
    """Formats that the grammar does not enforce."""


def schema_grammar(
    schema: dict[str, Any], dialect: type[Validator], spacing: Mapping[str, Any]
) -> SchemaGrammar:
    """Return a grammar that contains all JSON texts that are valid under `schema`.

    `spacing` are llguidance's options on white space.

    Raises:
        SchemaMistake: If the schema admits nothing, or no grammar can be made of it.
    """
    wider: dict[str, Any] = json.loads(json.dumps(schema))
    options = {"lenient": True, "coerce_one_of": True, **spacing, **wider.pop("x-guidance", {})}
    wider |= {"$schema": identifier(dialect), "x-guidance": options}
    unenforced = _widen_numbers(wider) | _drop_patterns(wider)
    while True:
        matcher = _compiled(wider)
        error = matcher.get_error().partition("\n")[0]
        warnings = matcher.get_grammar_warnings()
        dropped = _circles(wider) if _CIRCULAR in error else set[str]()
        for symptom, keywords in _REMEDIES.items():
            if any(symptom in line for line in (error, *warnings)):
                dropped |= _dropped(wider, keywords)
        if not dropped:
            break
        unenforced |= dropped
    if error:
        raise SchemaMistake(re.sub(r"^(at \d+\(\d+\): |failed to compile JSON schema: )+", "", error))
    formats = set[str]()
    for warning in warnings:
        if warning.startswith("Unimplemented keys: "):
            unenforced |= set(re.findall(r'"(.+?)"', warning))
        elif warning.startswith("Unknown format: "):
            formats.add(re.sub(r" \(\d+ times\)$", "", warning.removeprefix("Unknown format: ")))
        else:
            unenforced.add(warning.partition(" ")[0])
    return SchemaGrammar(json.dumps(wider), unenforced, formats)


def _compiled(schema: dict[str, Any]) -> LLMatcher:
    return matcher_of(byte_tokenizer(), f"start: %json {json.dumps(schema)}")


def _dropped(schema: dict[str, Any], keywords: set[str]) -> set[str]:
    """Remove `keywords` wherever they are in `schema`; return those that were there."""
    found = set[str]()
    for one in subschemas(schema):
        for keyword in keywords & one.keys():
            del one[keyword]
            found.add(keyword)
    return found


def _circles(schema: dict[str, Any]) -> set[str]:
    """Remove what llguidance cannot combine with references: the keywords next to `$ref`, and `allOf`."""
    found = _dropped(schema, {"allOf"})
    for one in subschemas(schema):
        if "$ref" in one:
            for keyword in one.keys() & KEYWORDS - {"$ref"}:
                del one[keyword]
                found.add(keyword)
    return found


def _drop_patterns(schema: dict[str, Any]) -> set[str]:
    """Remove the patterns that llguidance does not compile, or reads otherwise than JSON Schema.

    These are patterns with a look-ahead, and classes with what Rust takes for an operation on sets, such as `[a&&b]`.
    """
    found = set[str]()
    for one in subschemas(schema):
        for keyword, removed in (("pattern", {"pattern"}), ("patternProperties", _PATTERNS)):
            value = one.get(keyword)
            patterns = [value] if isinstance(value, str) else list(value) if isinstance(value, dict) else []
            if not all(map(_compiles, patterns)):
                found |= removed & one.keys()
                for key in removed & one.keys():
                    del one[key]
    return found


def _compiles(pattern: str) -> bool:
    return not (_SETS.search(pattern) or _compiled({"type": "string", "pattern": pattern}).is_error())


def _widen_numbers(schema: dict[str, Any]) -> set[str]:
    """Widen bounds and remove factors with several digits after the point.

    For these llguidance 1.9 makes grammars that are too small: below 0.95 it has no 0.9, and among the multiples of
    0.25 no 0.5.
    """
    found = set[str]()
    for one in subschemas(schema):
        if one.get("type") == "integer":
            continue
        for keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            if (bound := _fraction(one.get(keyword))) is not None:
                rounding = ROUND_FLOOR if "inimum" in keyword else ROUND_CEILING
                near = bound.quantize(_TENTH, rounding)
                if near != bound:
                    one[keyword] = float(near)
                    found.add(keyword)
        if (factor := _fraction(one.get("multipleOf"))) is not None:
            _, digits, exponent = factor.normalize().as_tuple()
            if len(digits) > 1 and int(exponent) < -1:
                del one["multipleOf"]
                found.add("multipleOf")
    return found


def _fraction(value: Any) -> Decimal | None:
    """Return `value` as it is written, if it is a number with a fraction."""
    return Decimal(repr(value)) if isinstance(value, float) and not value.is_integer() else None
