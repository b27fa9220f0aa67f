"""Formal language of tool calls: every call of one of the given tools with valid arguments."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.language_verifier import Invalid, Language, shorten
from trialogue.verifiers.schemas.call_formats import json_format, template_format
from trialogue.verifiers.schemas.definitions import Tool, parse_tool
from trialogue.verifiers.schemas.dialects import SchemaError
from trialogue.verifiers.schemas.languages import (
    JsonSchema,
    Whitespace,
    compile_schema,
    json_value,
    whitespace_options,
)


def tools_language(
    tools: JsonSchema | Sequence[Any], tokenization: Tokenization, whitespace: Whitespace
) -> Language:
    """Create the language of all texts that consist of a single tool call.

    The parser of the language returns a dictionary with the keys `name` and `arguments`.

    Args:
        tools: Definitions of the tools that may be called, or their JSON text.
        tokenization: Tokenization with a chat template, which determines the format of a call.
        whitespace: "compact" uses the whitespace of the chat template in the arguments. "flexible" allows whitespace
            wherever JSON does.

    Returns:
        A language that consists of a grammar for prefixes and a parser for complete texts.

    Raises:
        InputError: If a definition, or the schema of its arguments, is invalid.
    """
    defined, space = _parse_tools(json_value("tools", tools)), whitespace_options(whitespace)
    remark = "the chat template defines no usable format for tool calls; calls are written as JSON objects"
    form = template_format(tokenization) or json_format(space, remark)
    notes = [] if form.remark is None else [form.remark]
    rules, calls = list[str](), list[tuple[str, Callable[[str], str | None], Callable[[str], Any]]]()
    for place, (name, parameters) in enumerate(defined):
        try:
            content = compile_schema(
                {"type": "object", **parameters}, space if whitespace == "flexible" else form.spacing
            )
        except SchemaError as mistake:
            raise InputError("tools", name, str(mistake)) from None
        rules.append(f"call_{place}: {form.grammar(name, f'arguments_{place}')}")
        rules.append(f"arguments_{place}: %json {content.grammar}")
        calls.append((name, form.arguments(name), content.parse))
        notes += [f"{name}: {note}" for note in content.notes]

    def parse(text: str) -> Any:
        mistake = Invalid("it is not a tool call")
        for name, arguments, value in calls:
            argument_text = arguments(text)
            if argument_text is None:
                continue
            try:
                return {"name": name, "arguments": value(argument_text)}
            except Invalid as error:
                mistake = error
        raise mistake

    start = " | ".join(f"call_{place}" for place in range(len(defined)))
    source = shorten(", ".join(name for name, _ in defined))
    return Language("\n".join([f"start: {start}", *rules]), source, parse, tuple(notes))


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
