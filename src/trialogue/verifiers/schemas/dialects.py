"""Detection of the JSON Schema draft of a schema, and iteration over its subschemas."""

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


class SchemaError(ValueError):
    """Error for a JSON Schema that is invalid or cannot be enforced.

    The message is one line that does not contain the schema.
    """


def iterate_subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a JSON Schema and every object inside it that may itself be a schema.

    Objects under unknown keys are included, because they may be the target of a reference.

    Args:
        schema: JSON Schema.
    """
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            yield node
            for key, value in node.items():
                if key in _BY_NAME and isinstance(value, dict):
                    waiting += value.values()
                elif key not in _VALUES:
                    waiting.append(value)


def detect_draft(schema: dict[str, Any]) -> type[Validator]:
    """Return the validator class for the draft (version of JSON Schema) of a schema.

    If `$schema` does not name a draft, the latest draft that supports all keywords of the schema is used.

    Args:
        schema: JSON Schema.

    Raises:
        SchemaError: If the schema is not valid under the draft.
    """
    stated = validator_for(schema, default=_UNSTATED)
    drafts = _likely_drafts(schema) if stated is _UNSTATED else [stated]
    if drafts[0] not in DRAFTS:
        raise SchemaError("$schema: use draft 4 or later")
    for draft in drafts:
        if draft(draft.META_SCHEMA).is_valid(schema):
            return draft
    error = best_match(drafts[0](drafts[0].META_SCHEMA).iter_errors(schema))
    raise SchemaError(f"{error.json_path}: {error.message} ({DRAFTS[drafts[0]]})")


def _likely_drafts(schema: dict[str, Any]) -> list[type[Validator]]:
    """Return all drafts, those that support most keywords of `schema` first."""
    used = {key for one in iterate_subschemas(schema) for key in one} & KEYWORDS
    drafts = sorted(DRAFTS, key=lambda draft: len(used - set(draft.VALIDATORS)))
    if any(isinstance(one.get("items"), list) for one in iterate_subschemas(schema)):
        # Draft 2020-12 does not allow a list as `items`, but its metaschema does not check all definitions.
        drafts.sort(key=lambda draft: draft is Draft202012Validator)
    return drafts


def draft_uri(dialect: type[Validator]) -> str:
    """Return the URI that identifies a draft of JSON Schema in the keyword `$schema`.

    Args:
        dialect: Validator class of the draft.
    """
    return str(dialect.META_SCHEMA.get("$id", dialect.META_SCHEMA.get("id")))
