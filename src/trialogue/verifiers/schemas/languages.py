"""Languages from JSON Schemas: a grammar for token masks, and validation of complete texts."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from trialogue.errors import InputError
from trialogue.validation import validated
from trialogue.verifiers.languages.language_verifier import Language, shorten
from trialogue.verifiers.schemas.dialects import (
    DRAFTS,
    KEYWORDS,
    SchemaError,
    detect_draft,
    iterate_subschemas,
)
from trialogue.verifiers.schemas.formats import format_checker
from trialogue.verifiers.schemas.grammars import make_schema_grammar
from trialogue.verifiers.schemas.validation import make_validator

Whitespace = Literal["compact", "flexible"]
JsonSchema = Mapping[str, Any] | bool | str

_ANNOTATIONS = {
    *("contentEncoding", "contentMediaType", "default", "deprecated", "description", "example", "id"),
    *("maxContains", "minContains", "readOnly", "title", "writeOnly"),
}


class CompiledSchema(NamedTuple):
    """JSON Schema compiled to a grammar for token masks and a parser that validates complete texts."""

    grammar: str
    """Schema for llguidance as JSON text."""
    parse: Callable[[str], Any]
    """Function that converts a valid JSON text to its value and raises `Invalid` for other texts."""
    notes: tuple[str, ...]
    """Warnings for the user, one line each."""
    names: frozenset[str]
    """Required keys of all objects."""


def json_language(schema: JsonSchema, whitespace: Whitespace) -> Language:
    """Create the language of all JSON texts that are valid under a JSON Schema.

    Args:
        schema: JSON Schema as a mapping or JSON text.
        whitespace: "compact" allows whitespace only in strings. "flexible" allows it wherever JSON does.

    Returns:
        A language that consists of a grammar for prefixes and a parser for complete texts.

    Raises:
        InputError: If `schema` is not valid JSON, not a valid schema, or accepts nothing or everything.
    """
    value = json_value("json-schema", schema)
    source = shorten(json.dumps(value))
    try:
        content = compile_schema(value, whitespace_options(whitespace))
    except SchemaError as mistake:
        raise InputError("json-schema", source, str(mistake)) from None
    return Language(f"start: %json {content.grammar}", source, content.parse, content.notes, content.names)


@validated
def whitespace_options(whitespace: Whitespace) -> dict[str, Any]:
    """Return the options of the grammar library llguidance for a whitespace setting.

    Args:
        whitespace: "compact" allows whitespace only in strings. "flexible" allows it wherever JSON does.
    """
    return {"whitespace_flexible": whitespace == "flexible"}


def json_value(field: str, value: object) -> Any:
    """Convert a JSON text or a JSON-serializable object to a JSON value.

    Args:
        field: Name of the option for error messages.
        value: JSON text or object.

    Returns:
        Value that consists of dicts, lists, texts, numbers, bools and None.

    Raises:
        InputError: If `value` is not valid JSON.
    """
    try:
        if isinstance(value, str):
            return json.loads(value)
        return json.loads(json.dumps(dict(value) if isinstance(value, Mapping) else value))
    except (TypeError, ValueError, RecursionError) as error:
        shown = value if isinstance(value, str) else repr(value)
        raise InputError(field, shorten(shown), f"it is not valid JSON: {error}") from None


def compile_schema(schema: Any, spacing: Mapping[str, Any]) -> CompiledSchema:
    """Compile a JSON Schema to a grammar and a parser.

    Args:
        schema: JSON Schema.
        spacing: Whitespace options of llguidance. The `x-guidance` options of the schema take precedence.

    Returns:
        The grammar, the parser, and warnings about keywords that the grammar does not enforce.

    Raises:
        SchemaError: If `schema` is not a valid schema, accepts nothing, constrains nothing, or cannot be enforced.
    """
    if schema is False:
        raise SchemaError("it accepts nothing")
    if not isinstance(schema, dict) or not KEYWORDS & schema.keys():
        raise SchemaError("it constrains nothing; specify the allowed values with type, properties or enum")
    if not isinstance(schema.get("x-guidance", {}), dict):
        raise SchemaError("x-guidance: use an object with options of llguidance")
    try:
        dialect = detect_draft(schema)
        parse = make_validator(schema, dialect)
        grammar = make_schema_grammar(schema, dialect, spacing)
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None
    checked = set(format_checker(dialect).checkers)
    unenforced = grammar.unenforced | ({"format"} if grammar.unknown_formats & checked else set())
    known = _ANNOTATIONS | set(dialect.VALIDATORS)
    without_effect = {
        key
        for subschema in iterate_subschemas(schema)
        for key, value in subschema.items()
        # An object or list under an unknown key may contain the target of a reference.
        if not (key in known or key.startswith(("x-", "_", "$")) or isinstance(value, dict | list))
    }
    lines = (
        ("the grammar does not enforce {}, which is checked when a text is complete", unenforced),
        ("the format is not checked: {}", grammar.unknown_formats - checked),
        (f"{DRAFTS[dialect]} does not define {{}}, which is ignored", without_effect),
    )
    notes = tuple(line.format(", ".join(sorted(names))) for line, names in lines if names)
    names = {
        name
        for subschema in iterate_subschemas(schema)
        if isinstance(required := subschema.get("required"), list)
        for name in required
        if isinstance(name, str)
    }
    return CompiledSchema(grammar.text, parse, notes, frozenset(names))
