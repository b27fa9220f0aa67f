"""Validation of chat messages in the format of the OpenAI API, for use with chat templates."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trialogue.errors import InputError, require_choice, require_text

ROLES = ("system", "developer", "user", "assistant", "tool")


def validate_conversation(messages: object, system: str | None = None) -> list[dict[str, Any]]:
    """Validate chat messages, and convert them to the format of chat templates.

    Args:
        messages: Messages with a "role" (one of `ROLES`) and a "content". The content is a string, or a list of parts
            `{"type": "text", "text": TEXT}`, which are joined by line breaks. A message of the assistant may have
            "tool_calls" instead, whose arguments are objects or JSON strings. Other entries are passed to the template.
        system: Text of a system message to insert before the messages.

    Returns:
        The messages, whose contents are strings and whose tool-call arguments are objects.

    Raises:
        InputError: If a message is not valid, or if `system` is given and the first message is a system message.
    """
    if isinstance(messages, str) or not isinstance(messages, Sequence) or not messages:
        raise InputError("messages", messages, 'give a list of objects with a "role" and a "content"')
    checked = [_checked_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    if system is None:
        return checked
    require_text("system", system)
    if checked[0]["role"] == "system":
        hint = "the messages already begin with a system message. Remove one of the two"
        raise InputError("system", system, hint)
    return [{"role": "system", "content": system}, *checked]


def _checked_message(message: object, field: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise InputError(field, message, 'give an object with a "role" and a "content"')
    role = require_choice(f"{field}.role", message.get("role"), ROLES)
    calls = message.get("tool_calls")
    if role == "assistant" and calls:
        text = "" if message.get("content") is None else _checked_text(message["content"], f"{field}.content")
        return {**message, "content": text, "tool_calls": _checked_calls(calls, f"{field}.tool_calls")}
    return {**message, "content": _checked_text(message.get("content"), f"{field}.content")}


def _checked_text(content: object, field: str) -> str:
    if isinstance(content, str):
        require_text(field, content)
        return content
    if not isinstance(content, Sequence) or not content:
        raise InputError(field, content, "give a text")
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise InputError(field, content, 'give a text, or a list of {"type": "text", "text": TEXT}')
        require_text(field, text)
        texts.append(text)
    return "\n".join(texts)


def _checked_calls(calls: object, field: str) -> list[dict[str, Any]]:
    """Return tool calls whose arguments are objects, as chat templates expect."""
    hint = 'write each as {"type": "function", "function": {"name": NAME, "arguments": {...}}}'
    if isinstance(calls, str) or not isinstance(calls, Sequence):
        raise InputError(field, calls, hint)
    checked = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise InputError(field, call, hint)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as error:
                hint = f"the arguments are not valid JSON ({error}). Give a JSON object"
                raise InputError(field, arguments, hint) from None
        if not isinstance(arguments, Mapping):
            raise InputError(field, arguments, "the arguments must be a JSON object")
        checked.append({**call, "function": {**function, "arguments": arguments}})
    return checked
