"""Schemas as the interfaces of language models wrap them: definitions of tools, and formats of responses."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from trialogue.verifiers.schemas.keywords import EFFECTIVE

_SAYS_WHAT_IS_VALID = EFFECTIVE - {"type"}
_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}


class Tool(NamedTuple):
    """A function that a model may call: its name and the schema of its arguments."""

    name: str
    parameters: Any


class Wrapped(NamedTuple):
    """The schema in a wrapper, and what that is."""

    schema: Any
    wrapper: str


def tool(value: object) -> Tool | None:
    """The tool that `value` defines, as OpenAI's two interfaces, Anthropic's or MCP's have it; None where it is none.

    A definition without parameters takes none.
    """
    if not isinstance(value, Mapping) or value.keys() & _SAYS_WHAT_IS_VALID:
        return None
    function = value.get("function")
    if value.get("type") == "function" and isinstance(function, Mapping):
        return tool({**function, "type": "function"})
    name = value.get("name")
    for key in ("parameters", "input_schema", "inputSchema"):
        if isinstance(name, str) and isinstance(value.get(key), Mapping):
            return Tool(name, dict(value[key]))
    return Tool(name, _NO_ARGUMENTS) if isinstance(name, str) and value.get("type") == "function" else None


def unwrapped(value: Mapping[str, Any]) -> Wrapped | None:
    """The schema in the definition of a tool or of a response's format; None where `value` is neither."""
    defined = tool(value)
    if defined is not None:
        return Wrapped(defined.parameters, f"the parameters of the tool {defined.name!r}")
    if value.keys() & _SAYS_WHAT_IS_VALID:
        return None
    format_ = value.get("response_format", value)
    named = format_.get("json_schema", format_) if isinstance(format_, Mapping) else None
    if not isinstance(named, Mapping) or not isinstance(named.get("schema"), Mapping | bool):
        return None
    if format_.get("type") != "json_schema" and not isinstance(named.get("name"), str):
        return None
    return Wrapped(named["schema"], "the schema of the response's format")
