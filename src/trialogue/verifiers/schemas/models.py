"""Languages from pydantic models and other types that `pydantic.TypeAdapter` supports."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from trialogue.errors import InputError, describe_error
from trialogue.validation import Positive, validated
from trialogue.verifiers.functions.function import call_function
from trialogue.verifiers.functions.users_code import CRASHES, output_to_stderr
from trialogue.verifiers.languages.language_verifier import InvalidText, Language
from trialogue.verifiers.schemas.dialects import SchemaError
from trialogue.verifiers.schemas.languages import Whitespace, compile_schema, whitespace_options
from trialogue.verifiers.schemas.validation import parse_exactly


@validated
def model_language(
    model: Any,
    whitespace: Whitespace,
    timeout: Positive | None = None,
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
    name: str | None = None,
) -> Language:
    """Create the language of all JSON texts that a pydantic model accepts.

    The grammar is generated from the JSON Schema of the model. Complete texts are validated by the model itself,
    including its custom validators. The parser of the language returns instances of the model.

    Args:
        model: Pydantic model, or another type that `TypeAdapter` supports.
        whitespace: "compact" allows whitespace only in strings. "flexible" allows it wherever JSON does.
        timeout: Maximum duration of the validation of one text in seconds (default: no limit).
        around: Function that returns a context manager. Every use of the model runs inside such a context.
        name: Name of the model for error messages (default: its own name).

    Raises:
        InputError: If the model has no JSON Schema, or one that cannot be enforced.
    """
    shown = name or str(getattr(model, "__name__", model))
    try:
        with output_to_stderr(), around():
            adapter = TypeAdapter[Any](model)
            schema = adapter.json_schema()
    except PydanticUserError as error:
        raise InputError(
            "pydantic", shown, f"it has no JSON Schema: {error.message.splitlines()[0]}"
        ) from None
    except CRASHES as error:
        raise InputError("pydantic", shown, f"it has no JSON Schema: {describe_error(error)}") from error
    try:
        content = compile_schema(schema, whitespace_options(whitespace))
    except SchemaError as mistake:
        raise InputError("pydantic", shown, str(mistake)) from None

    def validated(text: str) -> Any:
        try:
            with around():
                return adapter.validate_json(text)
        except ValidationError as error:
            # It is returned, not raised, because `call_function` reports exceptions as errors of the user's code.
            return InvalidText(_first_message(error))

    validated.__name__ = shown

    def parse(text: str) -> Any:
        parse_exactly(text)
        value = call_function(validated, text, timeout)
        if isinstance(value, InvalidText):
            raise value
        return value

    return Language(f"start: %json {content.grammar}", shown, parse, content.notes, content.names)


def _first_message(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'/'.join(map(str, first['loc'])) or 'the root'}: {first['msg']}"
