"""Conversion of JSON Schemas to schemas that the grammar library llguidance can compile.

The grammar accepts every valid text. Keywords that it does not enforce are listed.
"""

import json
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

from jsonschema.protocols import Validator
from llguidance import LLMatcher

from trialogue.verifiers.languages.vocabularies import byte_tokenizer, make_matcher
from trialogue.verifiers.schemas.dialects import SchemaError, draft_uri, iterate_subschemas
from trialogue.verifiers.schemas.formats import PATTERNS

_PATTERNS = {"patternProperties", "additionalProperties"}
_REMEDIES = {
    "are not disjoint": _PATTERNS,
    "float range": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "min/maxProperties": {"minProperties", "maxProperties"},
}
"""Keywords to remove from the grammar, by the error of llguidance. They are checked by the validation."""
_SETS = re.compile(r"\[[^\]]*(?:\[|&&|--|~~)")
_TENTH = Decimal("0.1")


class SchemaGrammar(NamedTuple):
    """A schema that llguidance can compile, and the keywords and formats that it does not enforce."""

    text: str
    """Schema for llguidance as JSON text."""
    unenforced: set[str]
    """Keywords that the grammar enforces only partly or not at all."""
    unknown_formats: set[str]
    """Formats that the grammar does not enforce."""


def make_schema_grammar(
    schema: dict[str, Any], dialect: type[Validator], spacing: Mapping[str, Any]
) -> SchemaGrammar:
    """Convert a JSON Schema to a schema that the grammar library llguidance can compile.

    Every JSON text that is valid under the original schema matches the resulting grammar. The grammar may accept
    further texts, because keywords that llguidance does not support are removed.

    Args:
        schema: JSON Schema.
        dialect: Validator class of the schema's draft.
        spacing: Whitespace options of llguidance.

    Returns:
        The schema for llguidance, and the keywords and formats that it does not enforce.

    Raises:
        SchemaError: If the schema accepts nothing, or llguidance cannot compile it.
    """
    wider: dict[str, Any] = json.loads(json.dumps(schema))
    options = {"lenient": True, "coerce_one_of": True, **spacing, **wider.pop("x-guidance", {})}
    wider |= {"$schema": draft_uri(dialect), "x-guidance": options}
    unenforced = _widen_numbers(wider) | _drop_patterns(wider)
    _replace_formats(wider)
    while True:
        matcher = _compile(wider)
        error = matcher.get_error().partition("\n")[0]
        warnings = matcher.get_grammar_warnings()
        dropped = set[str]()
        for symptom, keywords in _REMEDIES.items():
            if any(symptom in line for line in (error, *warnings)):
                dropped |= _drop_keywords(wider, keywords)
        if not dropped:
            break
        unenforced |= dropped
    if error:
        raise SchemaError(re.sub(r"^(at \d+\(\d+\): |failed to compile JSON schema: )+", "", error))
    formats = set[str]()
    for warning in warnings:
        if warning.startswith("Unimplemented keys: "):
            unenforced |= set(re.findall(r'"(.+?)"', warning))
        elif warning.startswith("Unknown format: "):
            formats.add(re.sub(r" \(\d+ times\)$", "", warning.removeprefix("Unknown format: ")))
        else:
            unenforced.add(warning.partition(" ")[0])
    return SchemaGrammar(json.dumps(wider), unenforced, formats)


def _compile(schema: dict[str, Any]) -> LLMatcher:
    return make_matcher(byte_tokenizer(), f"start: %json {json.dumps(schema)}")


def _drop_keywords(schema: dict[str, Any], keywords: set[str]) -> set[str]:
    """Remove `keywords` everywhere in `schema`, and return the keywords that were found."""
    found = set[str]()
    for subschema in iterate_subschemas(schema):
        for keyword in keywords & subschema.keys():
            del subschema[keyword]
            found.add(keyword)
    return found


def _drop_patterns(schema: dict[str, Any]) -> set[str]:
    """Remove patterns that llguidance cannot compile or interprets differently from JSON Schema.

    These are patterns with look-ahead, and character classes that Rust parses as set operations, like `[a&&b]`.
    """
    found = set[str]()
    for subschema in iterate_subschemas(schema):
        for keyword, removed in (("pattern", {"pattern"}), ("patternProperties", _PATTERNS)):
            value = subschema.get(keyword)
            patterns = [value] if isinstance(value, str) else list(value) if isinstance(value, dict) else []
            if not all(map(_compiles, patterns)):
                found |= removed & subschema.keys()
                for key in removed & subschema.keys():
                    del subschema[key]
    return found


def _replace_formats(schema: dict[str, Any]) -> None:
    """Replace formats by patterns."""
    for subschema in iterate_subschemas(schema):
        name = subschema.get("format")
        if isinstance(name, str) and name in PATTERNS and "pattern" not in subschema:
            subschema["pattern"] = PATTERNS[name]
            del subschema["format"]


def _compiles(pattern: str) -> bool:
    return not (_SETS.search(pattern) or _compile({"type": "string", "pattern": pattern}).is_error())


def _widen_numbers(schema: dict[str, Any]) -> set[str]:
    """Round bounds outwards and remove values of `multipleOf` if they have several decimal places.

    For such values, llguidance 1.9 generates grammars that are too small. For example, 0.9 is missing from the numbers
    below 0.95, and 0.5 from the multiples of 0.25.
    """
    found = set[str]()
    for subschema in iterate_subschemas(schema):
        if subschema.get("type") == "integer":
            continue
        for keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
            if (bound := _fraction(subschema.get(keyword))) is not None:
                rounding = ROUND_FLOOR if "inimum" in keyword else ROUND_CEILING
                near = bound.quantize(_TENTH, rounding)
                if near != bound:
                    subschema[keyword] = float(near)
                    found.add(keyword)
        if (factor := _fraction(subschema.get("multipleOf"))) is not None:
            _, digits, exponent = factor.normalize().as_tuple()
            if len(digits) > 1 and int(exponent) < -1:
                del subschema["multipleOf"]
                found.add("multipleOf")
    return found


def _fraction(value: Any) -> Decimal | None:
    """Return the exact decimal value of a float with a fractional part, else None."""
    return Decimal(repr(value)) if isinstance(value, float) and not value.is_integer() else None
