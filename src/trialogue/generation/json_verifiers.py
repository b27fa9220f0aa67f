"""Verifiers of JSON from what the command line says behind the colon: a schema, a pydantic model, or tools."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trialogue.errors import InputError
from trialogue.generation.verifier_contents import file_of_function, is_inline, text_of

if TYPE_CHECKING:
    from trialogue.models.tokenization import Tokenization
    from trialogue.oracles import Verifier

Whitespace = Literal["compact", "flexible"]


def json_schema(spec: str, content: str, tokenization: "Tokenization", whitespace: Whitespace) -> "Verifier":
    """The verifier of the schema in the file `content`, or that `content` is itself; errors name `spec`."""
    from trialogue.verifiers import GrammarVerifier

    schema = _json(spec, content)
    if not isinstance(schema, dict | bool):
        raise InputError("verifier", spec, "a schema is a JSON object, true or false")
    return GrammarVerifier.json_schema(schema, tokenization, whitespace=whitespace)


def tools(spec: str, content: str, tokenization: "Tokenization", whitespace: Whitespace) -> "Verifier":
    """The verifier of calls of the tools in the file `content`, or that `content` lists itself; errors name `spec`."""
    from trialogue.verifiers import GrammarVerifier

    return GrammarVerifier.tools(_json(spec, content), tokenization, whitespace=whitespace)


def pydantic_model(
    content: str, tokenization: "Tokenization", whitespace: Whitespace, timeout: float | None
) -> "Verifier":
    """The verifier of the model that `content` names as FILE.py:CLASS, each answer within `timeout` seconds."""
    from trialogue.verifiers import pydantic_verifier

    path, name = file_of_function(content), content.rpartition(":")[2]
    return pydantic_verifier(path, name, tokenization, whitespace=whitespace, timeout=timeout)


def _json(spec: str, content: str) -> Any:
    text = content if is_inline(content) else text_of(spec, Path(content))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("verifier", spec, f"it is not JSON: {error}") from None
