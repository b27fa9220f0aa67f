"""Models of pydantic, and whatever else its `TypeAdapter` takes, as languages of JSON."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from trialogue.errors import InputError, reason
from trialogue.validation import Positive, validated
from trialogue.verifiers.function import answer_of
from trialogue.verifiers.language_verifier import Language, NotValid
from trialogue.verifiers.schemas.dialects import SchemaMistake
from trialogue.verifiers.schemas.languages import Whitespace, schema_content, spacing
from trialogue.verifiers.schemas.validation import exact_value
from trialogue.verifiers.users_code import CRASHES, output_to_stderr


@validated
def model_language(
    model: Any,
    whitespace: Whitespace,
    timeout: Positive | None = None,
    around: Callable[[], AbstractContextManager[object]] = nullcontext,
    name: str | None = None,
) -> Language:
    """JSON texts that `model` validates; their values are its instances.

    A grammar enforces what `model` says of itself as a JSON schema; the model, and whatever validators it has, decide
    on complete texts, within `around` and `timeout` seconds each. Errors call it `name`. Raises `InputError` where
    there is no such schema.
    """
    shown = name or str(getattr(model, "__name__", model))
    try:
        with output_to_stderr(), around():
            adapter = TypeAdapter[Any](model)
            schema = adapter.json_schema()
    except PydanticUserError as error:
        raise InputError(
            "pydantic", shown, f"it has no JSON schema: {error.message.splitlines()[0]}"
        ) from None
    except CRASHES as error:
        raise InputError("pydantic", shown, f"it has no JSON schema: {reason(error)}") from error
    try:
        content = schema_content(schema, spacing(whitespace))
    except SchemaMistake as mistake:
        raise InputError("pydantic", shown, str(mistake)) from None

    def validated(text: str) -> Any:
        try:
            with around():
                return adapter.validate_json(text)
        except ValidationError as error:
            # What a function of the user's raises is a fault of its own; this is a verdict.
            return NotValid(_first(error))

    validated.__name__ = shown

    def parse(text: str) -> Any:
        exact_value(text)
        value = answer_of(validated, text, timeout)
        if isinstance(value, NotValid):
            raise value
        return value

    return Language(f"start: %json {content.grammar}", shown, parse, content.notes)


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'/'.join(map(str, first['loc'])) or 'the root'}: {first['msg']}"
