"""What of a JSON schema a grammar can enforce: the schema without the keywords that would keep it from compiling."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jsonschema.protocols import Validator

from trialogue.inference.verifiers.schemas.dialects import identifier, references_stand_alone
from trialogue.inference.verifiers.schemas.keywords import EFFECTIVE, Place, Subschema
from trialogue.inference.verifiers.schemas.validation import in_grammars
from trialogue.inference.verifiers.vocabularies import byte_tokenizer, matcher_of

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


class Relaxed(NamedTuple):
    """A schema for a grammar, under which every value is valid that is so under the one it was made from."""

    schema: dict[str, Any]
    left: list[Place]
    """The keywords that it lacks, or that hold for other values too"""
    error: str
    """Why it does not compile; empty where it does"""


class _Edit(NamedTuple):
    """Keywords to be left out of one schema."""

    where: Subschema
    keywords: tuple[str, ...]


def relaxed(
    schema: dict[str, Any], found: Sequence[Subschema], dialect: type[Validator], guidance: dict[str, Any]
) -> Relaxed:
    """The schema nearest to `schema`, of which `found` are the parts, that compiles in its `dialect`.

    `guidance` is its `x-guidance`. It lacks few keywords more than it must: of those that may be at fault every half is
    tried with the rest left out.
    """
    compiled, any_case = 0, {"coerce_one_of": True, **guidance}
    ignored = _edits(found, _BESIDE_REFERENCES) if references_stand_alone(dialect) else []

    def made(edits: Sequence[_Edit], guidance: dict[str, Any]) -> dict[str, Any]:
        draft = {"$schema": identifier(dialect), "x-guidance": guidance}
        return {**_without(schema, [*ignored, *edits]), **draft}

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
        for where, keywords in edits
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


def _without(schema: dict[str, Any], edits: Sequence[_Edit]) -> dict[str, Any]:
    """`schema` without what `edits` name."""
    dropped: dict[int, set[str]] = {}
    for where, keywords in edits:
        dropped.setdefault(id(where.schema), set()).update(keywords)

    def copied(value: Any) -> Any:
        if isinstance(value, list):
            return [copied(one) for one in value]
        if not isinstance(value, dict):
            return value
        out = dropped.get(id(value), set())
        return {key: copied(one) for key, one in value.items() if key not in out}

    copy: dict[str, Any] = copied(schema)
    return copy
