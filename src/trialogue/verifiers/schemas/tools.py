"""Formal language of tool calls: every call of one of the given tools with valid arguments."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.language_verifier import Invalid, Language, shorten
from trialogue.verifiers.schemas.call_formats import CallFormat, json_format, template_format
from trialogue.verifiers.schemas.definitions import Tool, parse_tool
from trialogue.verifiers.schemas.dialects import SchemaError
from trialogue.verifiers.schemas.languages import (
    JsonSchema,
    Whitespace,
    compile_schema,
    json_language,
    json_value,
    whitespace_options,
)


def tools_language(
    tools: JsonSchema | Sequence[Any],
    tokenization: Tokenization,
    whitespace: Whitespace,
    parallel: bool = False,
    answer: JsonSchema | None = None,
) -> Language:
    """Create the language of all texts that consist of a single tool call, or of several ones.

    The parser of the language returns a dictionary with the keys `name` and `arguments`, or with `parallel` a list of
    them.

    Args:
        tools: Definitions of the tools that may be called, or their JSON text.
        tokenization: Tokenization with a chat template, which determines the format of a call.
        whitespace: "compact" uses the whitespace of the chat template in the arguments. "flexible" allows whitespace
            wherever JSON does.
        parallel: Allow several calls (default: False). If the chat template defines no format for several calls, only
            one is allowed.
        answer: JSON Schema of texts that are allowed instead of calls (default: none).

    Returns:
        A language that consists of a grammar for prefixes and a parser for complete texts.

    Raises:
        InputError: If a definition, or the schema of its arguments, is invalid.
    """
    defined, space = _parse_tools(json_value("tools", tools)), whitespace_options(whitespace)
    remark = "the chat template defines no usable format for tool calls; calls are written as JSON objects"
    form = template_format(tokenization) or json_format(space, remark)
    notes = [] if form.remark is None else [form.remark]
    rules, calls = list[str](), list[_ToolCall]()
    for place, (name, parameters) in enumerate(defined):
        schema = {"type": "object", **parameters}
        spacing = space if whitespace == "flexible" else form.spacing
        # The lexer cannot choose between a fixed text and a JSON object that begin with the same character.
        as_object = None if answer is None else form.schema(name, schema)
        try:
            content = compile_schema(schema, spacing)
            if as_object is not None:
                rules.append(f"call_{place}: %json {compile_schema(as_object, spacing).grammar}")
        except SchemaError as mistake:
            raise InputError("tools", name, str(mistake)) from None
        if as_object is None:
            rules.append(f"call_{place}: {form.grammar(name, f'arguments_{place}')}")
            rules.append(f"arguments_{place}: %json {content.grammar}")
        calls.append(_ToolCall(name, form, content.parse))
        notes += [f"{name}: {note}" for note in content.notes]
    rules.append("call: " + " | ".join(f"call_{place}" for place in range(len(defined))))
    separator, start = form.separator if parallel else None, "call"
    if separator is not None:
        start = f"call ({json.dumps(separator)} call)*" if separator else "call+"
    parse: Callable[[str], Any]
    parse = partial(_parse_calls, calls, separator) if parallel else partial(_parse_call, calls)
    if answer is not None:
        text = json_language(answer, whitespace)
        assert text.parse is not None
        start, notes = f"{start} | answer", [*notes, *text.notes]
        rules.append(text.grammar.replace("start:", "answer:", 1))
        parse = partial(_parse_either, parse, text.parse)
    source = shorten(", ".join(name for name, _ in defined))
    return Language("\n".join([f"start: {start}", *rules]), source, parse, tuple(notes))


class _ToolCall:
    """Parser of the calls of one tool.

    Args:
        name: Name of the tool.
        form: Format of the calls.
        value: Function that converts the JSON text of the arguments to a value.
    """

    def __init__(self, name: str, form: CallFormat, value: Callable[[str], Any]) -> None:
        self._name, self._value = name, value
        self.arguments, self.first_call = form.arguments(name), form.first_call(name)

    def parse(self, arguments: str) -> dict[str, Any]:
        """Return the call with the JSON text `arguments`."""
        return {"name": self._name, "arguments": self._value(arguments)}


def _parse_call(calls: Sequence[_ToolCall], text: str) -> dict[str, Any]:
    """Return the only call in a text, or raise `Invalid`."""
    mistake = Invalid("it is not a tool call")
    for call in calls:
        if (arguments := call.arguments(text)) is None:
            continue
        try:
            return call.parse(arguments)
        except Invalid as error:
            mistake = error
    raise mistake


def _parse_calls(calls: Sequence[_ToolCall], separator: str | None, text: str) -> list[dict[str, Any]]:
    """Return the calls in a text, or raise `Invalid`."""
    if separator is None:
        return [_parse_call(calls, text)]
    found, place = list[dict[str, Any]](), 0
    while True:
        extracted = ((call, call.first_call(text, place)) for call in calls)
        call, match = next(((call, match) for call, match in extracted if match is not None), (None, None))
        if call is None or match is None:
            raise Invalid("it is not a list of tool calls")
        found.append(call.parse(match[0]))
        if match[1] == len(text):
            return found
        if not text.startswith(separator, match[1]):
            raise Invalid("it is not a list of tool calls")
        place = match[1] + len(separator)


def _parse_either(parse: Callable[[str], Any], other: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except Invalid:
        return other(text)


def _parse_tools(value: Any) -> list[Tool]:
    if isinstance(value, Mapping):
        value = value.get("tools", [value])
    if not isinstance(value, list) or not value:
        raise InputError("tools", value, "pass a non-empty list of tool definitions")
    found = list[Tool]()
    for one in value:
        defined = parse_tool(one)
        if defined is None:
            hint = 'write each definition as {"type": "function", "function": {"name": ..., "parameters": {...}}}'
            raise InputError("tools", shorten(json.dumps(one)), hint)
        if json.dumps(defined.name) != f'"{defined.name}"' or not defined.name:
            raise InputError("tools", defined.name, "use only letters, digits, - and _ in the name of a tool")
        if any(defined.name == other.name for other in found):
            raise InputError("tools", defined.name, "use a unique name for each tool")
        found.append(defined)
    return found
