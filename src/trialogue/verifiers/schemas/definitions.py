"""Definitions of tools, as the interfaces of language models write them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}


class Tool(NamedTuple):
    """A function that a model may call: its name and the schema of its arguments."""

    name: str
    parameters: Any


def tool(value: object) -> Tool | None:
    """Return the tool that `value` defines in the format of OpenAI, Anthropic or MCP, or None if it defines none.

    A definition without parameters takes none.
    """
    if not isinstance(value, Mapping):
        return None
    function = value.get("function")
    if value.get("type") == "function" and isinstance(function, Mapping):
        return tool({**function, "type": "function"})
    name = value.get("name")
    for key in ("parameters", "input_schema", "inputSchema"):
        if isinstance(name, str) and isinstance(value.get(key), Mapping):
            return Tool(name, dict(value[key]))
    return Tool(name, _NO_ARGUMENTS) if isinstance(name, str) and value.get("type") == "function" else None
