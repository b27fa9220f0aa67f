"""The draft of JSON Schema that a schema is written in, and the schemas inside a schema."""

from collections.abc import Iterator
from typing import Any

from jsonschema import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for

DRAFTS: dict[type[Validator], str] = {
    Draft202012Validator: "draft 2020-12",
    Draft201909Validator: "draft 2019-09",
    Draft7Validator: "draft 7",
    Draft6Validator: "draft 6",
    Draft4Validator: "draft 4",
}
KEYWORDS = frozenset(keyword for draft in DRAFTS for keyword in draft.VALIDATORS)
"""Keywords that restrict which values are valid, in any draft."""
_UNSTATED = extend(Draft202012Validator)
_BY_NAME = {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
_VALUES = {"const", "default", "enum", "example", "examples"}


class SchemaMistake(ValueError):
    """A schema that cannot be enforced. The message is one line that does not repeat the schema."""


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in `schema` that may be a schema, also under keys that are no keywords."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            yield one
            for key, value in one.items():
                if key in _BY_NAME and isinstance(value, dict):
                    waiting += value.values()
                elif key not in _VALUES:
                    waiting.append(value)


def dialect_of(schema: dict[str, Any]) -> type[Validator]:
    """Return the validator of the draft of `schema`.

    If `$schema` names no draft, the latest draft that has all of the schema's keywords is used.

    Raises:
        SchemaMistake: If the schema is not valid under the draft.
    """
    stated = validator_for(schema, default=_UNSTATED)
    drafts = _likely_drafts(schema) if stated is _UNSTATED else [stated]
    if drafts[0] not in DRAFTS:
        raise SchemaMistake("$schema: use draft 4 or later")
    errors = [best_match(draft(draft.META_SCHEMA).iter_errors(schema)) for draft in drafts]
    for draft, error in zip(drafts, errors, strict=True):
        if error is None:
            return draft
    raise SchemaMistake(f"{errors[0].json_path}: {errors[0].message} ({DRAFTS[drafts[0]]})")


def _likely_drafts(schema: dict[str, Any]) -> list[type[Validator]]:
    """Return the drafts, those first that lack the fewest of the keywords in `schema`."""
    used = {key for one in subschemas(schema) for key in one} & KEYWORDS
    drafts = sorted(DRAFTS, key=lambda draft: len(used - set(draft.VALIDATORS)))
    if any(isinstance(one.get("items"), list) for one in subschemas(schema)):
        # The latest draft has no lists of items, but its metaschema does not look at every definition.
        drafts.sort(key=lambda draft: draft is Draft202012Validator)
    return drafts


def identifier(dialect: type[Validator]) -> str:
    """Return the value of `$schema` for schemas that `dialect` validates."""
    return str(dialect.META_SCHEMA.get("$id", dialect.META_SCHEMA.get("id")))
