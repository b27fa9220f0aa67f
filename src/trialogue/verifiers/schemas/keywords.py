"""The keywords of JSON schemas: where schemas stand in schemas, what is a misspelt keyword, and what has no effect."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

_OF_ONE_SCHEMA = {
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
}
_OF_SEVERAL_SCHEMAS = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
_OF_NAMED_SCHEMAS = {"dependencies", "dependentSchemas", "patternProperties", "properties"}
_DEFINITIONS = {"$defs", "definitions"}
_OF_NUMBERS = {
    *("exclusiveMaximum", "exclusiveMinimum", "maxContains", "maxItems", "maxLength", "maxProperties"),
    *("maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf"),
}
_OF_TEXTS = {"$dynamicRef", "$recursiveRef", "$ref", "format", "pattern"}
_OF_LISTS = {"enum", "required"}
_WITHOUT_EFFECT = {
    *("$anchor", "$comment", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary"),
    *("contentEncoding", "contentMediaType", "contentSchema", "default", "deprecated", "description"),
    *("examples", "id", "readOnly", "title", "writeOnly", "x-guidance"),
}

EFFECTIVE = frozenset(
    _OF_ONE_SCHEMA | _OF_SEVERAL_SCHEMAS | _OF_NAMED_SCHEMAS | _OF_NUMBERS | _OF_TEXTS | _OF_LISTS
) | {"const", "dependentRequired", "type", "uniqueItems"}
"""Keywords that say which values are valid."""

_TAKES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_OF_NUMBERS, (int, float)),
    **dict.fromkeys(_OF_TEXTS, (str,)),
    **dict.fromkeys(_OF_LISTS, (list,)),
    **dict.fromkeys(_OF_SEVERAL_SCHEMAS, (list,)),
    **dict.fromkeys(_OF_NAMED_SCHEMAS, (dict,)),
    **dict.fromkeys(_OF_ONE_SCHEMA, (dict, bool)),
    **{"dependentRequired": (dict,), "items": (dict, list), "type": (str, list), "uniqueItems": (bool,)},
}
"""What a keyword is given; one that any value may stand behind cannot be told from an annotation."""
_DELIBERATE = ("x-", "_", "$", "@", "/", "#")
"""What begins the names of keys that are meant to be extensions, or to be switched off."""
_TYPES = {"array", "boolean", "null", "number", "object", "string"}
_OF_TRIVIAL = {"allOf", "dependentSchemas", "patternProperties", "prefixItems", "properties"}
_OF_LEAST = {"dependentRequired", "minItems", "minLength", "minProperties", "required", "uniqueItems"}
_LONG = 9
_SHOWN = 3


class Subschema(NamedTuple):
    """An object that stands where a schema is expected; `path` are the keys that lead there from the root."""

    path: tuple[str, ...]
    schema: dict[str, Any]


class Place(NamedTuple):
    """A keyword, or another key, of the schema at `path`, and what stands behind it."""

    path: tuple[str, ...]
    keyword: str
    value: Any


def subschemas(schema: Any) -> Iterator[Subschema]:
    """`schema` and every schema in it; what it says of values, in enum or default, is none."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), schema)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, dict):
            yield Subschema(path, one)
            waiting += reversed([((*path, *keys), inner) for keys, inner in within(one)])


def within(schema: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What stands directly in `schema` where a schema is expected, and the keys that lead there."""
    for key, value in schema.items():
        if key in _OF_SEVERAL_SCHEMAS and isinstance(value, list):
            yield from (((key, str(place)), inner) for place, inner in enumerate(value))
        elif key in _OF_NAMED_SCHEMAS | _DEFINITIONS and isinstance(value, dict):
            yield from (((key, name), inner) for name, inner in value.items())
        elif key in _OF_ONE_SCHEMA:
            yield (key,), value


def constrains(schema: Any) -> bool:
    """Whether some value is not valid under `schema`, as far as its keywords tell by themselves."""
    if not isinstance(schema, dict):
        return schema is not True
    return any(_constrains(key, value) for key, value in schema.items() if key in EFFECTIVE)


def _constrains(keyword: str, value: Any) -> bool:
    if keyword == "type" and isinstance(value, list):
        return bool(_TYPES.difference(map(str, value)))
    if keyword == "anyOf" and isinstance(value, list):
        return all(map(constrains, value))
    if keyword in _OF_TRIVIAL and isinstance(value, dict | list):
        return any(map(constrains, value if isinstance(value, list) else value.values()))
    if keyword in _OF_ONE_SCHEMA - {"if", "not", "contains"}:
        return constrains(value)
    # What asks for nothing: a least number of 0, an empty list of required properties.
    return value not in (0, [], {}) or keyword not in _OF_LEAST


def pointer(path: Sequence[object]) -> str:
    """`path` as a JSON pointer without its leading slash; the root has a name."""
    return "/".join(str(key).replace("~", "~0").replace("/", "~1") for key in path) or "the root"


def misspelt(found: Sequence[Subschema]) -> str | None:
    """What to hint in the first misspelt keyword of the schemas `found`; None where there is none.

    It is one letter off (two in long words), or in another case or with underscores, and has what the keyword takes.
    """
    for path, schema in found:
        for key in _unknown(schema):
            near = [(_changes(key, word), word) for word in _TAKES if _may_mean(key, schema[key], word)]
            near = [(changes, word) for changes, word in near if changes is not None]
            if near:
                return f"{pointer((*path, key))} is no keyword and has no effect: {min(near)[1]!r} misspelt?"
    return None


def without_effect(found: Sequence[Subschema]) -> str | None:
    """A line on the keys of the schemas `found` that JSON Schema does not know; None where all are known."""
    unknown = [
        Place(path, key, schema[key])
        for path, schema in found
        for key in _unknown(schema)
        if not key.startswith(_DELIBERATE)
    ]
    return f"JSON Schema has no {places(unknown)}: without effect" if unknown else None


def places(found: Sequence[Place]) -> str:
    """The keywords of `found` in a line, the first few of them with where they are."""
    first: dict[str, list[Place]] = {}
    for place in found:
        first.setdefault(place.keyword, []).append(place)
    named = [
        f"{keyword} (at {pointer(several[0].path)}{f' and {len(several) - 1} more' if len(several) > 1 else ''})"
        for keyword, several in first.items()
    ]
    more = len(named) - _SHOWN
    return ", ".join(named[:_SHOWN]) + (f" and {more} other keys" if more > 0 else "")


def _unknown(schema: dict[str, Any]) -> list[str]:
    known = EFFECTIVE | _WITHOUT_EFFECT | _DEFINITIONS
    return [key for key in schema if key not in known]


def _may_mean(key: str, value: Any, word: str) -> bool:
    """Whether `value` is what the keyword `word` takes, and `key` not unknown on purpose."""
    if isinstance(value, bool) and bool not in _TAKES[word]:
        return False
    return (
        isinstance(value, _TAKES[word])
        and (word != "$ref" or "#" in str(value))
        and not key.startswith(_DELIBERATE)
    )


def _changes(key: str, word: str) -> int | None:
    """How many letters of `key` are wrong, where few enough are for it to mean `word`."""
    plain, meant = key.replace("_", "").replace("-", "").lower(), word.lower().lstrip("$")
    changes = sum(
        max(end - start, to - since)
        for kind, start, end, since, to in SequenceMatcher(None, plain, meant, False).get_opcodes()
        if kind != "equal"
    )
    allowed = 2 if len(meant) >= _LONG or sorted(plain) == sorted(meant) else 1
    # A word of two or three letters is one letter off many others.
    return changes if changes <= (allowed if len(meant) > 3 else 0) else None
