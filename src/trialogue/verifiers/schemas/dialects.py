"""Detection of the JSON Schema draft of a schema, and iteration over its subschemas."""

from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import urljoin

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
from jsonschema_specifications import REGISTRY

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
        # Most schemas are valid, and the flat metaschema decides this in a fraction of the time.
        if draft(flat_metaschema(draft)).is_valid(schema) or draft(draft.META_SCHEMA).is_valid(schema):
            return draft
    error = best_match(drafts[0](drafts[0].META_SCHEMA).iter_errors(schema))
    # The message of `anyOf` only says that all alternatives fail, so the messages of the alternatives are shown.
    message = ", and ".join(cause.message for cause in error.context) or error.message
    raise SchemaError(f"{error.json_path}: {message} ({DRAFTS[drafts[0]]})")


@cache
def flat_metaschema(draft: type[Validator]) -> dict[str, Any]:
    """Return a metaschema that accepts only valid schemas of a draft, without references to other documents.

    Since draft 2019-09, the metaschema consists of several documents, whose combination takes most of the time of a
    validation.

    Args:
        draft: Validator class of the draft.
    """
    metaschema = dict(draft.META_SCHEMA)
    if "allOf" not in metaschema:
        return metaschema
    base = metaschema["$id"]
    documents = [REGISTRY[urljoin(base, part["$ref"])].contents for part in metaschema["allOf"]]
    merged: dict[str, Any] = {"type": ["object", "boolean"], "properties": {}, "$defs": {}}
    for document in (*documents, metaschema):
        for field in ("properties", "$defs"):
            merged[field] |= document.get(field, {})
    return dict(_with_local_references(merged))


def _with_local_references(node: Any) -> Any:
    """Return a part of a metaschema whose references point into the same document."""
    if isinstance(node, list):
        return [_with_local_references(part) for part in node]
    if not isinstance(node, dict):
        return node
    changed = {}
    for key, value in node.items():
        if key in ("$dynamicRef", "$recursiveRef") and isinstance(value, str):
            changed["$ref"] = "#"
        elif key == "$ref" and isinstance(value, str):
            changed[key] = f"#{value.partition('#')[2]}"
        else:
            changed[key] = _with_local_references(value)
    return changed


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
