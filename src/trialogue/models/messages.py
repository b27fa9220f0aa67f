"""Conversations as chat templates take them: messages with roles, as OpenAI's interface has them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trialogue.errors import InputError, one_of, require_text

ROLES = ("system", "developer", "user", "assistant", "tool")


def conversation(messages: object, system: str | None = None) -> list[dict[str, Any]]:
    """`messages` as chat templates take them, a message of the role "system" with the text `system` before them.

    A message is an object with a "role" (one of `ROLES`) and a "content": a text, or a list of parts
    `{"type": "text", "text": TEXT}`, which are joined by line breaks. One of the assistant may have "tool_calls" in its
    place, whose arguments are objects or their JSON texts. Whatever else it has is for the template.

    Raises `InputError` for anything else, and for a `system` where the messages begin with one of their own.
    """
    if isinstance(messages, str) or not isinstance(messages, Sequence) or not messages:
        raise InputError("messages", messages, 'give a list of objects with a "role" and a "content"')
    checked = [_message(message, f"messages[{place}]") for place, message in enumerate(messages)]
    if system is None:
        return checked
    require_text("system", system)
    if checked[0]["role"] == "system":
        hint = "the messages begin with a system message of their own: leave out one of them"
        raise InputError("system", system, hint)
    return [{"role": "system", "content": system}, *checked]


def _message(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise InputError(where, message, 'give an object with a "role" and a "content"')
    role = one_of(f"{where}.role", message.get("role"), ROLES)
    calls = message.get("tool_calls")
    if role == "assistant" and calls:
        text = "" if message.get("content") is None else _text(message["content"], f"{where}.content")
        return {**message, "content": text, "tool_calls": _calls(calls, f"{where}.tool_calls")}
    return {**message, "content": _text(message.get("content"), f"{where}.content")}


def _text(content: object, where: str) -> str:
    if isinstance(content, str):
        require_text(where, content)
        return content
    if not isinstance(content, Sequence) or not content:
        raise InputError(where, content, "give a text")
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise InputError(where, content, 'give a text, or a list of {"type": "text", "text": TEXT}')
        require_text(where, text)
        texts.append(text)
    return "\n".join(texts)


def _calls(calls: object, where: str) -> list[dict[str, Any]]:
    """Calls with their arguments as objects, which is what templates write."""
    hint = 'write each as {"type": "function", "function": {"name": NAME, "arguments": {...}}}'
    if isinstance(calls, str) or not isinstance(calls, Sequence):
        raise InputError(where, calls, hint)
    read = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise InputError(where, call, hint)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as error:
                raise InputError(where, arguments, f"the arguments are not JSON: {error}") from None
        if not isinstance(arguments, Mapping):
            raise InputError(where, arguments, "the arguments are no object of names and values")
        read.append({**call, "function": {**function, "arguments": arguments}})
    return read
