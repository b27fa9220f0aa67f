"""Misspelt keywords of JSON schemas: unknown ones are legal and without effect, so that nothing else would tell."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

_OF_ONE_SCHEMA = {
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
}
_OF_SEVERAL_SCHEMAS = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
_OF_NAMED_SCHEMAS = {
    *("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"),
}
_OF_VALUES = {
    *("$ref", "const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format"),
    *(
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
    ),
    *("minProperties", "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems"),
}
_WITHOUT_EFFECT = {
    *("$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef"),
    *(
        "$schema",
        "$vocabulary",
        "contentEncoding",
        "contentMediaType",
        "default",
        "deprecated",
        "description",
    ),
    *("examples", "id", "readOnly", "title", "writeOnly", "x-guidance"),
}
_WITH_EFFECT = _OF_ONE_SCHEMA | _OF_SEVERAL_SCHEMAS | _OF_NAMED_SCHEMAS | _OF_VALUES

_NEARNESS = 0.85
"""Enough for a letter too many, too few or changed place; the words of common extensions are further off."""
_MEANT = {word.lower(): word for word in _WITH_EFFECT - {"else", "if", "not", "then"}}
"""By their plain spelling, keywords long enough to be told from a word of another meaning."""


def mend_of_keywords(schema: Any) -> str | None:
    """What to mend in `schema`, JSON values: a misspelt keyword, or that it has none; None where all is well."""
    for keys in _schemas(schema):
        for key in keys:
            if key in _WITH_EFFECT | _WITHOUT_EFFECT:
                continue
            near = get_close_matches(key.replace("_", "").lower(), _MEANT, 1, _NEARNESS)
            if near:
                return f"the keyword {key!r} is unknown and has no effect: it may be {_MEANT[near[0]]!r} misspelt"
    if isinstance(schema, dict) and schema and not schema.keys() & (_WITH_EFFECT | _WITHOUT_EFFECT):
        return (
            "none of its keys is a keyword of JSON Schema: say what is allowed with type, properties or enum"
        )
    return None


def _schemas(schema: Any) -> Iterator[list[str]]:
    """The keys of `schema` and of every schema in it; what it says of values, in enum or default, is none."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            continue
        yield list(one)
        for key, value in one.items():
            if key in _OF_SEVERAL_SCHEMAS and isinstance(value, list):
                waiting += value
            elif key in _OF_NAMED_SCHEMAS and isinstance(value, dict):
                waiting += value.values()
            elif key in _OF_ONE_SCHEMA:
                waiting.append(value)
