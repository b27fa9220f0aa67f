"""Verifiers that enforce the tools and the response format of a request."""

import json
from typing import Any, NamedTuple

from trialogue.errors import InputError, require_choice
from trialogue.generation.prompts import require_tools
from trialogue.serving.body import ChatBody, CompletionBody
from trialogue.serving.verifiers import RequestedVerifier


class ToolUse(NamedTuple):
    """The tools of a chat request.

    Attributes:
        template: Tool definitions for the chat template, or None.
        callable: Definitions of the tools that the response may call. Empty if it may not call a tool.
        is_required: Whether the response must consist of calls.
        is_parallel: Whether the response may contain several calls. If None, a required response has one call.
    """

    template: list[Any] | None
    callable: list[Any]
    is_required: bool
    is_parallel: bool | None

    @property
    def calls(self) -> RequestedVerifier | None:
        """Verifier that accepts calls of the tools, or None."""
        if not self.callable:
            return None
        return self._verifier(
            "tools", bool(self.is_parallel) if self.is_required else self.is_parallel is not False
        )

    def constraint(self, formats: list[RequestedVerifier]) -> list[RequestedVerifier]:
        """Return the verifiers that the response must satisfy.

        Args:
            formats: Verifiers for the response format. A response that is not a call must satisfy them.
        """
        if self.is_required:
            return [self._verifier("tools", bool(self.is_parallel))]
        if not self.callable or not formats:
            return formats
        answer = json.loads(formats[0].content)
        return [self._verifier("response_format", bool(self.is_parallel), answer=answer)]

    def _verifier(self, field: str, parallel: bool, **options: object) -> RequestedVerifier:
        content = {"tools": self.callable, "parallel": parallel, **options}
        return RequestedVerifier(field, "tools", json.dumps(content))


def read_tools(tools: object, choice: object, parallel: bool | None) -> ToolUse:
    """Read the fields `tools` and `tool_choice` of a chat request.

    Args:
        tools: Value of the field `tools`, or None.
        choice: Value of the field `tool_choice`, or None.
        parallel: Whether the response may contain several calls, or None.

    Raises:
        InputError: If a field is invalid.
    """
    hint = 'use "none", "auto", "required", {"type": "function", "function": {"name": NAME}} or allowed_tools'
    if tools is None:
        if choice not in (None, "none", "auto"):
            raise InputError("tool_choice", choice, "leave it out or add tools")
        return ToolUse(None, [], False, parallel)
    require_tools(tools)
    assert isinstance(tools, list)
    mode = "auto" if choice is None else choice
    allowed = tools
    if isinstance(choice, dict):
        mode, names = _allowed_tools(choice) or (None, [])
        if mode is None:
            raise InputError("tool_choice", choice, hint)
        allowed = [one for one in tools if one.get("function", one).get("name") in names]
        if len(allowed) < len(names):
            raise InputError("tool_choice", choice, "use the names of the tools")
    if require_choice("tool_choice", mode, ("none", "auto", "required"), hint) == "none":
        return ToolUse(None, [], False, parallel)
    return ToolUse(tools, allowed, mode == "required", parallel)


def _allowed_tools(choice: dict[str, Any]) -> tuple[str, set[str]] | None:
    """Return the mode and the names of the allowed tools of a `tool_choice`, or None if it is invalid."""
    # The definition is flat in the Responses API, and nested in chat completions.
    definition = choice.get(str(choice.get("type")), choice)
    if not isinstance(definition, dict):
        return None
    mode: Any = "required"
    listed: Any = [definition]
    if choice.get("type") == "allowed_tools":
        mode, listed = definition.get("mode"), definition.get("tools")
    elif choice.get("type") != "function":
        return None
    if not isinstance(listed, list) or not listed or mode not in ("auto", "required"):
        return None
    functions = [one.get("function", one) if isinstance(one, dict) else None for one in listed]
    names = [one.get("name") if isinstance(one, dict) else None for one in functions]
    found = {name for name in names if isinstance(name, str)}
    return (mode, found) if all(isinstance(name, str) for name in names) else None


def read_response_format(value: object) -> list[RequestedVerifier]:
    """Convert the field `response_format` of a request to verifiers.

    Args:
        value: Value of the field, or None.

    Returns:
        Verifiers that the text must satisfy. Empty for plain text.

    Raises:
        InputError: If the value is invalid.
    """
    hint = 'use {"type": "json_schema", "json_schema": {"name": NAME, "schema": SCHEMA}}, or the type "json_object"'
    if value is None:
        return []
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in ("text", "json_object", "json_schema"):
        raise InputError("response_format", value, hint)
    if kind == "text":
        return []
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
