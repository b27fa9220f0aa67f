"""JSON schemas as languages: a grammar for the mask, and validation of complete texts."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from trialogue.errors import InputError
from trialogue.validation import validated
from trialogue.verifiers.language_verifier import Language, shortened
from trialogue.verifiers.schemas.dialects import DRAFTS, KEYWORDS, SchemaMistake, dialect_of, subschemas
from trialogue.verifiers.schemas.grammars import schema_grammar
from trialogue.verifiers.schemas.validation import format_checker, validation

Whitespace = Literal["compact", "flexible"]
JsonSchema = Mapping[str, Any] | bool | str

_ANNOTATIONS = {
    *("contentEncoding", "contentMediaType", "default", "deprecated", "description", "example", "id"),
    *("maxContains", "minContains", "readOnly", "title", "writeOnly"),
}


class Content(NamedTuple):
    """A schema in two parts: what a grammar enforces, as JSON text, and what validates a complete text."""

    grammar: str
    parse: Callable[[str], Any]
    notes: tuple[str, ...]
    """What a user should know, in lines."""


def json_language(schema: JsonSchema, whitespace: Whitespace) -> Language:
    """Return the language of the JSON texts that are valid under `schema`, a mapping or JSON text.

    Raises:
        InputError: If it is no JSON, no schema, or one that admits nothing or everything.
    """
    value = json_value("json-schema", schema)
    source = shortened(json.dumps(value))
    try:
        content = schema_content(value, spacing(whitespace))
    except SchemaMistake as mistake:
        raise InputError("json-schema", source, str(mistake)) from None
    return Language(f"start: %json {content.grammar}", source, content.parse, content.notes)


@validated
def spacing(whitespace: Whitespace) -> dict[str, Any]:
    """Return llguidance's options on white space in JSON."""
    return {"whitespace_flexible": whitespace == "flexible"}


def json_value(field: str, value: object) -> Any:
    """Return JSON values, or the values of a JSON text.

    Raises:
        InputError: If `value` is no JSON. The error names `field`.
    """
    try:
        if isinstance(value, str):
            return json.loads(value)
        return json.loads(json.dumps(dict(value) if isinstance(value, Mapping) else value))
    except (TypeError, ValueError, RecursionError) as error:
        shown = value if isinstance(value, str) else repr(value)
        raise InputError(field, shortened(shown), f"it is no JSON: {error}") from None


def schema_content(schema: Any, spacing: Mapping[str, Any]) -> Content:
    """Return the two parts of `schema`; its own `x-guidance` takes precedence over `spacing`.

    Raises:
        SchemaMistake: If it is no schema, admits nothing, constrains nothing, or cannot be enforced.
    """
    if schema is False:
        raise SchemaMistake("it admits nothing")
    if not isinstance(schema, dict) or not KEYWORDS & schema.keys():
        raise SchemaMistake("it constrains nothing: say what is allowed with type, properties or enum")
    if not isinstance(schema.get("x-guidance", {}), dict):
        raise SchemaMistake("x-guidance: give an object of llguidance's options")
    try:
        dialect = dialect_of(schema)
        parse = validation(schema, dialect)
        grammar = schema_grammar(schema, dialect, spacing)
    except RecursionError:
        raise SchemaMistake("it is nested too deeply") from None
    checked = set(format_checker(dialect).checkers)
    unenforced = grammar.unenforced | ({"format"} if grammar.unknown_formats & checked else set())
    known = _ANNOTATIONS | set(dialect.VALIDATORS)
    without_effect = {
        key
        for one in subschemas(schema)
        for key, value in one.items()
        # Schemas that references lead to may stand under any key.
        if not (key in known or key.startswith(("x-", "_", "$")) or isinstance(value, dict | list))
    }
    lines = (
        ("no grammar enforces {}: checked when a text is complete", unenforced),
        ("nothing checks the format {}", grammar.unknown_formats - checked),
        (f"{DRAFTS[dialect]} has no {{}}: without effect", without_effect),
    )
    notes = tuple(line.format(", ".join(sorted(names))) for line, names in lines if names)
    return Content(grammar.text, parse, notes)
