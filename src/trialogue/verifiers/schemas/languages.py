"""JSON schemas as languages: a grammar of texts, what validates them at their end, and what a user should know."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from trialogue.errors import InputError, one_of
from trialogue.verifiers.language_verifier import Language, shortened
from trialogue.verifiers.schemas.definitions import unwrapped
from trialogue.verifiers.schemas.dialects import SchemaMistake, dialect_of, draft_named, resolved
from trialogue.verifiers.schemas.keywords import (
    EFFECTIVE,
    Place,
    constrains,
    misspelt,
    places,
    subschemas,
    without_effect,
)
from trialogue.verifiers.schemas.relaxation import relaxed
from trialogue.verifiers.schemas.validation import is_checked, validation

Whitespace = Literal["compact", "flexible"]
JsonSchema = Mapping[str, Any] | bool | str

_PARTS = {"else": "if", "maxContains": "contains", "minContains": "contains", "then": "if"}
"""Keywords that jsonschema reads along with another."""


class Content(NamedTuple):
    """A schema in two parts: what a grammar enforces, as JSON text, and what validates a text at its end."""

    grammar: str
    parse: Callable[[str], Any]
    late: list[Place]
    """The keywords that only `parse` enforces"""
    unchecked: list[Place]
    """The formats that nobody checks"""
    ignored: list[Place]
    """The keywords without effect in the schema's draft"""
    draft: str
    remark: str | None
    """On keys that are no keywords"""

    def notes(self) -> list[str]:
        """What a user should know, in lines."""
        lines = [
            ("no grammar enforces {}: checked when a text is complete", self.late),
            (
                "nothing checks {}",
                [place._replace(keyword=f"format {place.value!r}") for place in self.unchecked],
            ),
            (f"{self.draft} has no {{}}: without effect", self.ignored),
        ]
        said = [line.format(places(found)) for line, found in lines if found]
        return said if self.remark is None else [*said, self.remark]


def json_language(schema: JsonSchema, whitespace: Whitespace) -> Language:
    """JSON texts that are valid under `schema`, given as a mapping, a truth value or JSON text.

    Raises `InputError` where it is no JSON, no schema, or one that admits nothing or everything.
    """
    value = json_value("json-schema", schema)
    source, notes = shortened(json.dumps(value)), list[str]()
    wrapped = unwrapped(value) if isinstance(value, dict) else None
    if wrapped is not None:
        value = wrapped.schema
        notes.append(f"the rule is {wrapped.wrapper}")
    try:
        content = schema_content(value, spacing(whitespace))
    except SchemaMistake as mistake:
        raise InputError("json-schema", source, str(mistake)) from None
    return Language(f"start: %json {content.grammar}", source, content.parse, (*notes, *content.notes()))


def spacing(whitespace: Whitespace) -> dict[str, Any]:
    """What llguidance is told of white space in JSON."""
    one_of("whitespace", whitespace, get_args(Whitespace))
    return {"whitespace_flexible": whitespace == "flexible"}


def json_value(field: str, value: object) -> Any:
    """`value`, or what it is the JSON text of, as JSON values; raises `InputError` with `field` where it is no JSON."""
    try:
        if isinstance(value, str):
            return json.loads(value)
        return json.loads(json.dumps(dict(value) if isinstance(value, Mapping) else value))
    except (TypeError, ValueError, RecursionError) as error:
        shown = value if isinstance(value, str) else repr(value)
        raise InputError(field, shortened(shown), f"it is no JSON: {error}") from None


def schema_content(schema: Any, spacing: Mapping[str, Any]) -> Content:
    """The two parts of `schema`, JSON values; `spacing` holds unless the schema has an `x-guidance` of its own.

    Raises `SchemaMistake` for what is no schema, admits nothing, or constrains nothing.
    """
    try:
        return _content(schema, spacing)
    except RecursionError:
        raise SchemaMistake("it is nested too deeply") from None


def _content(schema: Any, spacing: Mapping[str, Any]) -> Content:
    if not isinstance(schema, dict | bool):
        raise SchemaMistake("give an object, true or false")
    if schema is False:
        raise SchemaMistake("it admits nothing")
    parts = list(subschemas(schema))
    mistake = misspelt(parts)
    if mistake is not None:
        raise SchemaMistake(mistake)
    if not isinstance(schema, dict) or not constrains(schema):
        foreign = isinstance(schema, dict) and without_effect(parts) and not schema.keys() & EFFECTIVE
        what = "none of its keys is a keyword of JSON Schema" if foreign else "it constrains nothing"
        raise SchemaMistake(f"{what}: say what is allowed with type, properties or enum")
    guidance = schema.get("x-guidance", dict(spacing))
    if not isinstance(guidance, dict):
        raise SchemaMistake("x-guidance: give an object of llguidance's options")
    dialect = dialect_of(schema)
    found = resolved(schema, dialect)
    # A grammar reads the schema in the same draft as the validator does.
    enforced = relaxed(schema, found, dialect, guidance)
    if enforced.error:
        raise SchemaMistake(
            re.sub(r"^(at \d+\(\d+\): |failed to compile JSON schema: )+", "", enforced.error)
        )
    late, unchecked, ignored = list[Place](), list[Place](), list[Place]()
    for place in enforced.left:
        if place.keyword == "format":
            (late if is_checked(place.value) else unchecked).append(place)
        else:
            (late if _PARTS.get(place.keyword, place.keyword) in dialect.VALIDATORS else ignored).append(
                place
            )
    return Content(
        json.dumps(enforced.schema),
        validation(schema, found, dialect),
        late,
        unchecked,
        ignored,
        draft_named(dialect),
        without_effect(found),
    )
