"""What of a JSON schema a grammar can enforce: the schema without the keywords that would keep it from compiling."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

from jsonschema.protocols import Validator

from trialogue.verifiers.schemas.dialects import identifier, references_stand_alone
from trialogue.verifiers.schemas.keywords import EFFECTIVE, Place, Subschema
from trialogue.verifiers.schemas.patterns import for_grammars
from trialogue.verifiers.schemas.validation import in_grammars
from trialogue.verifiers.vocabularies import byte_tokenizer, matcher_of

_NEVER = {
    *("$dynamicRef", "$recursiveRef", "contains", "dependencies", "dependentRequired", "dependentSchemas"),
    *("else", "if", "maxContains", "minContains", "not", "propertyNames", "then", "unevaluatedItems"),
    *("unevaluatedProperties", "uniqueItems"),
}
"""Keywords that no grammar enforces."""
_BESIDE_REFERENCES: tuple[str, ...] = ()
_SOMETIMES = (
    ("pattern",),
    ("patternProperties", "additionalProperties"),
    ("minProperties",),
    ("maxProperties",),
    _BESIDE_REFERENCES,
    ("$ref",),
    ("allOf",),
    ("anyOf",),
    ("multipleOf",),
    ("maxLength",),
    ("minLength",),
    ("maxItems",),
    ("minItems",),
    ("prefixItems", "items"),
    ("items", "additionalItems"),
)
"""Keywords that grammars may not enforce, each with those that mean something else without it."""
_MOST_COMPILED = 60
_LEAST, _MOST = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_TENTH = Decimal("0.1")


class Relaxed(NamedTuple):
    """A schema for a grammar, under which every value is valid that is so under the one it was made from."""

    schema: dict[str, Any]
    left: list[Place]
    """The keywords that it lacks, or that hold for other values too"""
    error: str
    """Why it does not compile; empty where it does"""


class _Edit(NamedTuple):
    """Keywords to be left out of one schema, or to have what is in `instead`."""

    where: Subschema
    keywords: tuple[str, ...]
    instead: Mapping[str, Any] = {}


def relaxed(
    schema: dict[str, Any], found: Sequence[Subschema], dialect: type[Validator], guidance: dict[str, Any]
) -> Relaxed:
    """The schema nearest to `schema`, of which `found` are the parts, that compiles in its `dialect`.

    `guidance` is its `x-guidance`. It lacks few keywords more than it must: of those that may be at fault every half is
    tried with the rest left out.
    """
    compiled, any_case = 0, {"coerce_one_of": True, **guidance}
    ignored = _edits(found, _BESIDE_REFERENCES) if references_stand_alone(dialect) else []
    schemas = {id(one.schema) for one in found}

    def made(edits: Sequence[_Edit], guidance: dict[str, Any]) -> dict[str, Any]:
        draft = {"$schema": identifier(dialect), "x-guidance": guidance}
        return {**_edited(schema, schemas, [*ignored, *edits]), **draft}

    def error(edits: Sequence[_Edit], guidance: dict[str, Any] = any_case) -> str:
        nonlocal compiled
        compiled += 1
        return compile_error(made(edits, guidance))

    edits = [edit for one in found for edit in _certain(one)]
    if not error(edits, guidance):
        return Relaxed(made(edits, guidance), _left(edits), "")
    message, doubtful = error(edits), list[_Edit]()
    for keywords in _SOMETIMES:
        # What admits nothing admits no more with some of its keywords left out, as far as a grammar can tell.
        if not message or "Unsatisfiable" in message:
            break
        doubtful += _edits(found, keywords)
        message = error([*edits, *doubtful])
    if not message:
        edits += _needed(doubtful, lambda some: compiled > _MOST_COMPILED or bool(error([*edits, *some])))
    left = _left(edits)
    if error(edits, guidance):
        # Nothing is lost where cases exclude each other: any of them is then one of them.
        left += [Place(path, "oneOf", one["oneOf"]) for path, one in found if "oneOf" in one]
    return Relaxed(made(edits, any_case), left, message)


def _edits(found: Sequence[Subschema], keywords: tuple[str, ...]) -> list[_Edit]:
    """One for every schema of `found` that has the first of `keywords`, or something beside a reference."""
    if keywords != _BESIDE_REFERENCES:
        return [_Edit(one, keywords) for one in found if keywords[0] in one.schema]
    referring = [one for one in found if "$ref" in one.schema]
    beside = [
        _Edit(one, tuple(key for key in one.schema if key in EFFECTIVE - {"$ref"})) for one in referring
    ]
    return [edit for edit in beside if edit.keywords]


def _left(edits: Sequence[_Edit]) -> list[Place]:
    return [
        Place(where.path, keyword, where.schema[keyword])
        for where, keywords, _ in edits
        for keyword in keywords
        if keyword in where.schema
    ]


def compile_error(schema: dict[str, Any]) -> str:
    """Why `schema` does not compile to a grammar; empty where it does."""
    matcher = matcher_of(byte_tokenizer(), f"start: %json {json.dumps(schema)}")
    return str(matcher.get_error()).partition("\n")[0] if matcher.is_error() else ""


def _certain(one: Subschema) -> Iterator[_Edit]:
    yield from (_Edit(one, (key,)) for key in one.schema if key in _NEVER)
    name = one.schema.get("format")
    if isinstance(name, str) and not in_grammars(name):
        yield _Edit(one, ("format",))
    if one.schema.get("type") != "integer":
        yield from _of_decimals(one)


def _of_decimals(one: Subschema) -> Iterator[_Edit]:
    """What llguidance takes for less than it is where its digits after the point are several.

    Below 0.95 it misses 0.9, and of the multiples of 0.25 it misses 0.5.
    """
    for keyword in (*_LEAST, *_MOST):
        bound = _decimal(one.schema.get(keyword))
        near = bound.quantize(_TENTH, ROUND_FLOOR if keyword in _LEAST else ROUND_CEILING) if bound else bound
        if near != bound:
            yield _Edit(one, (keyword,), {keyword: float(str(near))})
    factor = _decimal(one.schema.get("multipleOf"))
    if factor is not None:
        _, digits, exponent = factor.normalize().as_tuple()
        if len(digits) > 1 and int(exponent) < -1:
            yield _Edit(one, ("multipleOf",))


def _decimal(value: Any) -> Decimal | None:
    """The number `value` as it is written, where it is one with a fraction."""
    return Decimal(repr(value)) if isinstance(value, float) and not value.is_integer() else None


def _needed(edits: list[_Edit], fails: Callable[[list[_Edit]], bool]) -> list[_Edit]:
    """Those of `edits`, with all of which nothing fails, that are needed for that."""
    if not edits or not fails([]):
        return []
    if len(edits) == 1:
        return edits
    half = len(edits) // 2
    first, second = edits[:half], edits[half:]
    kept = _needed(first, lambda some: fails([*some, *second]))
    return kept + _needed(second, lambda some: fails([*kept, *some]))


def _edited(schema: dict[str, Any], schemas: Set[int], edits: Sequence[_Edit]) -> dict[str, Any]:
    """`schema` without what `edits` name, or with what they have instead, and patterns as grammars read them.

    `schemas` are the ids of all schemas in it.
    """
    dropped: dict[int, set[str]] = {}
    changed: dict[int, dict[str, Any]] = {}
    for where, keywords, instead in edits:
        dropped.setdefault(id(where.schema), set()).update(keywords)
        changed.setdefault(id(where.schema), {}).update(instead)

    def copied(value: Any) -> Any:
        if isinstance(value, list):
            return [copied(one) for one in value]
        if not isinstance(value, dict):
            return value
        out = dropped.get(id(value), set())
        kept = {key: copied(one) for key, one in value.items() if key not in out}
        if id(value) in schemas:
            if isinstance(kept.get("pattern"), str):
                kept["pattern"] = for_grammars(kept["pattern"])
            if isinstance(kept.get("patternProperties"), dict):
                kept["patternProperties"] = _by_grammars(kept["patternProperties"])
        return {**kept, **changed.get(id(value), {})}

    copy: dict[str, Any] = copied(schema)
    return copy


def _by_grammars(schemas: dict[str, Any]) -> dict[str, Any]:
    """`schemas` by their patterns as grammars read them."""
    translated = dict[str, Any]()
    for pattern, schema in schemas.items():
        name = for_grammars(pattern)
        while name in translated:
            name += "(?:)"
        translated[name] = schema
    return translated
