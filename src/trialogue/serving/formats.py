"""Verifiers that enforce the tools and the response format of a request."""

import json
from typing import Any

from trialogue.errors import InputError, require_choice
from trialogue.generation.prompts import require_tools
from trialogue.serving.body import ChatBody, CompletionBody
from trialogue.serving.verifiers import RequestedVerifier


def read_tools(tools: object, choice: object) -> tuple[list[Any] | None, RequestedVerifier | None, bool]:
    """Read the fields `tools` and `tool_choice` of a chat request.

    Args:
        tools: Value of the field `tools`, or None.
        choice: Value of the field `tool_choice`, or None.

    Returns:
        Three values. The first has the tool definitions for the chat template, or None. The second is a
        verifier that accepts calls of these tools, or None. The third is True if the response must be a tool
        call.

    Raises:
        InputError: If a field is invalid.
    """
    hint = 'use "none", "auto", "required" or {"type": "function", "function": {"name": NAME}}'
    if tools is None:
        if choice not in (None, "none", "auto"):
            raise InputError("tool_choice", choice, "leave it out or add tools")
        return None, None, False
    require_tools(tools)
    assert isinstance(tools, list)
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if choice.get("type") != "function" or not isinstance(name, str):
            raise InputError("tool_choice", choice, hint)
        chosen = [one for one in tools if one.get("function", one).get("name") == name]
        if not chosen:
            raise InputError("tool_choice", choice, "use the name of one of the tools")
        return tools, RequestedVerifier("tools", "tools", json.dumps(chosen)), True
    choice = "auto" if choice is None else choice
    if require_choice("tool_choice", choice, ("none", "auto", "required"), hint) == "none":
        return None, None, False
    return tools, RequestedVerifier("tools", "tools", json.dumps(tools)), choice == "required"


def read_response_format(value: object, tools: bool) -> list[RequestedVerifier]:
    """Convert the field `response_format` of a request to verifiers.

    Args:
        value: Value of the field, or None.
        tools: Whether the request has tools. They cannot be combined with a JSON format.

    Returns:
        Verifiers that the text must satisfy. Empty for plain text.

    Raises:
        InputError: If the value is invalid or combined with tools.
    """
    hint = 'use {"type": "json_schema", "json_schema": {"name": NAME, "schema": SCHEMA}}, or the type "json_object"'
    if value is None:
        return []
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in ("text", "json_object", "json_schema"):
        raise InputError("response_format", value, hint)
    if kind == "text":
        return []
    if tools:
        hint = "leave out tools or response_format: they cannot be combined"
        raise InputError("response_format", value, hint)
    schema: object = {"type": "object"}
    if kind == "json_schema":
        named = value.get("json_schema")
        schema = named.get("schema") if isinstance(named, dict) else None
        if not isinstance(schema, dict | bool):
            raise InputError("response_format", value, hint)
    return [RequestedVerifier("response_format", "json-schema", json.dumps(schema))]


_STRUCTURES = {"json": "json-schema", "regex": "regex", "choice": "choice", "grammar": "lark"}
"""Kinds of verifiers by the name of a constraint in vLLM."""
_WITHOUT_EFFECT = (
    "disable_additional_properties",
    "disable_any_whitespace",
    "disable_fallback",
    "whitespace_pattern",
)
"""Options of `structured_outputs` that select an implementation of vLLM. JSON never has optional whitespace."""


def read_structured_outputs(body: CompletionBody | ChatBody) -> list[RequestedVerifier]:
    """Convert the constraints of vLLM to verifiers: `structured_outputs`, `guided_json` and similar fields.

    Args:
        body: Fields of the request.

    Returns:
        One verifier, or none if there is no such field.

    Raises:
        InputError: If there are several constraints or a constraint is unknown.
    """
    field, given = "structured_outputs", body.structured_outputs or {}
    structures = {name: value for name, value in given.items() if value is not None}
    structures = {name: value for name, value in structures.items() if name not in _WITHOUT_EFFECT}
    for name in _STRUCTURES:
        value = getattr(body, f"guided_{name}")
        if value is not None:
            structures[name], field = value, f"guided_{name}"
    if structures.get("json_object"):
        structures["json"] = {"type": "object"}
    structures.pop("json_object", None)
    if not structures:
        return []
    if len(structures) > 1 or not structures.keys() <= _STRUCTURES.keys():
        raise InputError(field, sorted(structures), f"use one of {', '.join(_STRUCTURES)}")
    [(name, content)] = structures.items()
    content = content if isinstance(content, str) else json.dumps(content)
    if not content:
        raise InputError(field, content, "use a constraint that is not empty")
    return [RequestedVerifier(field, _STRUCTURES[name], content)]
