"""Parsing of tool definitions in the formats of common language model APIs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}


class Tool(NamedTuple):
    """Tool that a language model can call.

    Attributes:
        name: Name of the tool.
        parameters: JSON Schema of its arguments.
    """

    name: str
    parameters: Any


def parse_tool(value: object) -> Tool | None:
    """Parse a tool definition in the format of OpenAI, Anthropic or MCP.

    Args:
        value: Definition. If it contains no schema of the parameters, the tool takes no arguments.

    Returns:
        Name of the tool and schema of its arguments. None if `value` is not a definition in one of these formats.
    """
    if not isinstance(value, Mapping):
        return None
    function = value.get("function")
    if value.get("type") == "function" and isinstance(function, Mapping):
        return parse_tool({**function, "type": "function"})
    name = value.get("name")
    for key in ("parameters", "input_schema", "inputSchema"):
        if isinstance(name, str) and isinstance(value.get(key), Mapping):
            return Tool(name, dict(value[key]))
    return Tool(name, _NO_ARGUMENTS) if isinstance(name, str) and value.get("type") == "function" else None
