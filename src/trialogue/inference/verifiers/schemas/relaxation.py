"""What of a JSON schema a grammar can enforce: the schema without the keywords that would keep it from compiling."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from llguidance import LLMatcher

from trialogue.inference.verifiers.schemas.keywords import Place, Subschema
from trialogue.inference.verifiers.schemas.validation import in_grammars
from trialogue.inference.verifiers.vocabularies import byte_tokenizer

_NEVER = {
    *("$dynamicRef", "$recursiveRef", "contains", "dependencies", "dependentRequired", "dependentSchemas"),
    *("else", "if", "maxContains", "minContains", "not", "propertyNames", "then", "unevaluatedItems"),
    *("unevaluatedProperties", "uniqueItems"),
}
"""Keywords that no grammar enforces."""
_SOMETIMES: tuple[tuple[str, ...], ...] = (
    ("oneOf",),
    ("pattern",),
    ("patternProperties", "additionalProperties"),
    ("minProperties",),
    ("maxProperties",),
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
    """A schema of which every valid value is valid under the one that it was made from, and what that says besides."""

    schema: dict[str, Any]
    left: list[Place]
    """The keywords that it lacks"""
    error: str
    """Why it does not compile; empty where it does"""


class _Edit(NamedTuple):
    """Keywords to be left out of one schema."""

    where: Subschema
    keywords: tuple[str, ...]


def relaxed(schema: dict[str, Any], found: Sequence[Subschema], options: dict[str, Any]) -> Relaxed:
    """The schema nearest to `schema`, of which `found` are the parts, that compiles with the `options` of x-guidance.

    It lacks few keywords more than it must: of those that may be at fault every half is tried with the rest left out.
    """
    compiled = 0

    def error(edits: Sequence[_Edit]) -> str:
        nonlocal compiled
        compiled += 1
        return compile_error({**_without(schema, edits), **options})

    edits = [edit for one in found for edit in _certain(one)]
    message = error(edits)
    # What admits nothing admits no more with some of its keywords left out, as far as a grammar can tell.
    if message and "Unsatisfiable" not in message:
        doubtful: list[_Edit] = []
        for keywords in _SOMETIMES:
            doubtful += [_Edit(one, keywords) for one in found if keywords[0] in one.schema]
            message = error([*edits, *doubtful])
            if not message:
                break
        if not message:
            edits += _needed(doubtful, lambda some: compiled > _MOST_COMPILED or bool(error([*edits, *some])))
    left = [
        Place(where.path, keyword, where.schema[keyword])
        for where, keywords in edits
        for keyword in keywords
        if keyword in where.schema
    ]
    return Relaxed(_without(schema, edits), left, message)


def compile_error(schema: dict[str, Any]) -> str:
    """Why `schema` does not compile to a grammar; empty where it does."""
    matcher = LLMatcher(byte_tokenizer(), f"start: %json {json.dumps(schema)}", log_level=0)
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
    """`schema` without what `edits` name; one of several cases becomes any of them."""
    dropped: dict[int, set[str]] = {}
    for where, keywords in edits:
        dropped.setdefault(id(where.schema), set()).update(keywords)

    def copied(value: Any) -> Any:
        if isinstance(value, list):
            return [copied(one) for one in value]
        if not isinstance(value, dict):
            return value
        out = dropped.get(id(value), set())
        # Properties come in the order in which keywords mention them, so that the cases stay in their place.
        return {
            "anyOf" if key in out else key: copied(one)
            for key, one in value.items()
            if key not in out or (key == "oneOf" and "anyOf" not in value)
        }

    copy: dict[str, Any] = copied(schema)
    return copy
