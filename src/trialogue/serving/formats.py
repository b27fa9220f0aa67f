"""Tools and formats of responses as verifiers that a request asks for."""

import json
from typing import Any

from trialogue.errors import InputError, one_of
from trialogue.generation.prompts import require_tools
from trialogue.serving.verifiers import RequestedVerifier


def tools_asked(tools: object, choice: object) -> tuple[list[Any] | None, RequestedVerifier | None, bool]:
    """What the template lists, what a call is, and whether there has to be one."""
    hint = 'use "none", "auto", "required" or {"type": "function", "function": {"name": NAME}}'
    if tools is None:
        if choice not in (None, "none", "auto"):
            raise InputError("tool_choice", choice, "there are no tools: give some, or leave it out")
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
            raise InputError("tool_choice", choice, "none of the tools is called so")
        return tools, RequestedVerifier("tools", "tools", json.dumps(chosen)), True
    choice = "auto" if choice is None else choice
    if one_of("tool_choice", choice, ("none", "auto", "required"), hint) == "none":
        return None, None, False
    return tools, RequestedVerifier("tools", "tools", json.dumps(tools)), choice == "required"


def format_asked(value: object, tools: bool) -> list[RequestedVerifier]:
    """What the field `response_format` asks for; beside `tools` it can ask for nothing."""
    hint = 'use {"type": "json_schema", "json_schema": {"name": NAME, "schema": SCHEMA}}, or the type "json_object"'
    if value is None:
        return []
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in ("text", "json_object", "json_schema"):
        raise InputError("response_format", value, hint)
    if kind == "text":
        return []
    if tools:
        hint = "it cannot hold beside tools, whose calls are no such JSON: leave out one of them"
        raise InputError("response_format", value, hint)
    schema: object = {"type": "object"}
    if kind == "json_schema":
        named = value.get("json_schema")
        schema = named.get("schema") if isinstance(named, dict) else None
        if not isinstance(schema, dict | bool):
            raise InputError("response_format", value, hint)
    return [RequestedVerifier("response_format", "json-schema", json.dumps(schema))]
