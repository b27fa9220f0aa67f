"""Verifiers of JSON as the command line builds them: of a schema, a pydantic model, or tools."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.errors import InputError
from trialogue.generation.verifier_contents import file_of_function, is_inline, text_of

if TYPE_CHECKING:
    from trialogue.generation.verifier_specs import Wanted
    from trialogue.oracles import Verifier


def json_schema(wanted: "Wanted") -> "Verifier":
    """The verifier of the schema that stands in a file, or itself in the spec."""
    from trialogue.inference.verifiers import GrammarVerifier

    schema = _json(wanted)
    if not isinstance(schema, dict | bool):
        raise InputError("verifier", wanted.spec, "a schema is a JSON object, true or false")
    return GrammarVerifier.json_schema(
        schema, wanted.oracle.tokenization, whitespace=wanted.rule.json_whitespace
    )


def pydantic(wanted: "Wanted") -> "Verifier":
    """The verifier of the model in a Python file, which is run."""
    from trialogue.inference.verifiers import pydantic_verifier

    return pydantic_verifier(
        file_of_function(wanted.content),
        wanted.content.rpartition(":")[2],
        wanted.oracle.tokenization,
        whitespace=wanted.rule.json_whitespace,
        timeout=wanted.rule.verifier_timeout or None,
    )


def tools(wanted: "Wanted") -> "Verifier":
    """The verifier of calls of the tools that a file lists."""
    from trialogue.inference.verifiers import GrammarVerifier

    return GrammarVerifier.tools(
        _json(wanted), wanted.oracle.tokenization, whitespace=wanted.rule.json_whitespace
    )


def _json(wanted: "Wanted") -> Any:
    spec, content = wanted.spec, wanted.content
    text = content if is_inline(content) else text_of(spec, Path(content))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("verifier", spec, f"it is not JSON: {error}") from None
