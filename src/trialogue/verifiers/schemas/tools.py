"""Calls of tools as a language: the union of their call formats, with arguments that are valid under their schemas."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.language_verifier import Invalid, Language, shortened
from trialogue.verifiers.schemas.call_formats import plain_format, stated_format
from trialogue.verifiers.schemas.definitions import Tool, tool
from trialogue.verifiers.schemas.dialects import SchemaMistake
from trialogue.verifiers.schemas.languages import JsonSchema, Whitespace, json_value, schema_content, spacing


def tools_language(
    tools: JsonSchema | Sequence[Any], tokenization: Tokenization, whitespace: Whitespace
) -> Language:
    """One call of one of `tools`, as the chat template of `tokenization` writes it; its value is name and arguments.

    Raises `InputError` for what is no list of definitions, and for a schema of arguments that is wrong.
    """
    defined, space = _defined(json_value("tools", tools)), spacing(whitespace)
    unstated = (
        "the chat template states no format for calls of tools that a text can have: they are plain JSON"
    )
    form = stated_format(tokenization) or plain_format(space, unstated)
    notes = [] if form.remark is None else [form.remark]
    rules, calls = list[str](), list[tuple[str, Callable[[str], str | None], Callable[[str], Any]]]()
    for place, (name, parameters) in enumerate(defined):
        try:
            content = schema_content(
                {"type": "object", **parameters}, space if whitespace == "flexible" else form.spacing
            )
        except SchemaMistake as mistake:
            raise InputError("tools", name, str(mistake)) from None
        rules.append(f"call_{place}: {form.grammar(name, f'arguments_{place}')}")
        rules.append(f"arguments_{place}: %json {content.grammar}")
        calls.append((name, form.arguments(name), content.parse))
        notes += [f"{name}: {note}" for note in content.notes]

    def parse(text: str) -> Any:
        mistake = Invalid("it is no call of a tool")
        for name, arguments, value in calls:
            written = arguments(text)
            if written is None:
                continue
            try:
                return {"name": name, "arguments": value(written)}
            except Invalid as error:
                mistake = error
        raise mistake

    start = " | ".join(f"call_{place}" for place in range(len(defined)))
    source = shortened(", ".join(name for name, _ in defined))
    return Language("\n".join([f"start: {start}", *rules]), source, parse, tuple(notes))


def _defined(value: Any) -> list[Tool]:
    if isinstance(value, Mapping):
        value = value.get("tools", [value])
    if not isinstance(value, list) or not value:
        raise InputError("tools", value, "give a list of definitions of tools")
    found = list[Tool]()
    for one in value:
        defined = tool(one)
        if defined is None:
            hint = 'write each as {"type": "function", "function": {"name": ..., "parameters": {...}}}'
            raise InputError("tools", shortened(json.dumps(one)), hint)
        if json.dumps(defined.name) != f'"{defined.name}"' or not defined.name:
            raise InputError("tools", defined.name, "use letters, digits, - and _ in the name of a tool")
        if any(defined.name == other.name for other in found):
            raise InputError("tools", defined.name, "give each tool a name of its own")
        found.append(defined)
    return found
