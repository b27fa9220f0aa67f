"""Detection of the text format in which a model calls tools, from its chat template."""

import json
import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any, NamedTuple

from trialogue.models.tokenization import Tokenization

_NAME, _ID = "name_of_the_function", "a1b2c3d4e"
_ARGUMENTS = {"first_argument": 1, "second_argument": [2, 3]}
_OTHER_NAME, _OTHER_ID = "another_one", "Z9y8X7w6V"
_OTHER_ARGUMENTS = {"first_argument": "of another call", "second_argument": None}
_IDENTIFIER = "[a-zA-Z0-9]{9}"
_TEXTUAL = "\N{SNOWMAN}"
_MARKER = r"<[^<>\s]+>|\[/?\w+\]"
"""Regular expression for the markers that chat templates commonly use. A marker is compared as a unit."""


class CallFormat(NamedTuple):
    """Text format in which a language model writes a tool call.

    A call consists of the text `before`, the JSON text of the arguments, and the text `behind`. Both texts contain
    placeholders for the name of the tool and the id of the call.
    """

    before: str
    behind: str
    spacing: dict[str, Any]
    """Whitespace options of llguidance for the arguments."""
    remark: str | None = None
    """Warning for the user."""

    def grammar(self, name: str, arguments: str) -> str:
        """Return the right-hand side of a Lark grammar rule that matches a call of a tool.

        Args:
            name: Name of the tool.
            arguments: Name of the grammar rule that matches the arguments.
        """
        parts = [*_literals(self.before, name), arguments, *_literals(self.behind, name)]
        return " ".join(parts)

    def arguments(self, name: str) -> Callable[[str], str | None]:
        """Return a function that extracts the JSON text of the arguments from a call of a tool.

        Args:
            name: Name of the tool.

        Returns:
            Function from the text of a call to the text of its arguments. It returns None if the text is not a call of
            this tool.
        """
        before, behind = (
            re.escape(text.replace(_NAME, name)).replace(_ID, _IDENTIFIER)
            for text in (self.before, self.behind)
        )
        pattern = re.compile(f"{before}(.*){behind}", re.DOTALL)

        def extract(text: str) -> str | None:
            match = pattern.fullmatch(text)
            return None if match is None else match[1]

        return extract


def json_format(spacing: dict[str, Any], remark: str) -> CallFormat:
    """Return the format in which a tool call is the JSON object `{"name":"...","arguments":...}`.

    Args:
        spacing: Whitespace options of llguidance for the arguments.
        remark: Warning to be shown to the user.
    """
    return CallFormat(f'{{"name":"{_NAME}","arguments":', "}", spacing, remark)


def template_format(tokenization: Tokenization) -> CallFormat | None:
    """Detect the format of tool calls in a chat template.

    Text cannot contain special tokens. If a call begins with special tokens, they must be part of the prompt, which the
    remark of the format states. Formats with special tokens in other places are not supported.

    Args:
        tokenization: Tokenization with the chat template.

    Returns:
        The format, or None if the template defines no format or an unsupported one.
    """
    history, prompt = _render(tokenization, None), _render(tokenization, None, prompt=True)
    answer, special = _render(tokenization, {"content": _TEXTUAL}), _special(tokenization)
    # Some templates expect the arguments as an object, others as JSON text.
    for form in (dict, json.dumps):
        written = _render(tokenization, _call(_NAME, _ID, form(_ARGUMENTS)))
        other = _render(tokenization, _call(_OTHER_NAME, _OTHER_ID, form(_OTHER_ARGUMENTS)))
        if written is None or other is None or answer is None:
            continue
        if prompt is not None and prompt != history and written.startswith(prompt):
            start = len(prompt)
        else:
            start = _common_prefix_length(written, answer, special)
        found = _parse_call(written[start:])
        if found is None:
            continue
        end = special.search(found.behind)
        message_end = found.behind[end.start() :] if end else _common_suffix(found.behind, answer, special)
        found = found._replace(behind=found.behind.removesuffix(message_end))
        if other.startswith(written[:start]) and _matches_another_call(found, other[start:], message_end):
            return _move_special_tokens(found, special)
    return None


def _call(name: str, identifier: str, arguments: object) -> dict[str, Any]:
    call = {"type": "function", "id": identifier, "function": {"name": name, "arguments": arguments}}
    return {"content": "", "tool_calls": [call]}


def _render(tokenization: Tokenization, answer: dict[str, Any] | None, prompt: bool = False) -> str | None:
    """Render a conversation with the template, or return None if the template raises an error."""
    tokenizer = tokenization.tokenizer
    if not tokenizer.chat_template:
        return None
    parameters = {"type": "object", "properties": {name: {} for name in _ARGUMENTS}}
    messages = [{"role": "user", "content": "A question."}]
    if answer is not None:
        messages.append({"role": "assistant", **answer})
    functions = [
        {"name": name, "description": "A function.", "parameters": parameters}
        for name in (_NAME, _OTHER_NAME)
    ]
    try:
        return str(
            tokenizer.apply_chat_template(
                messages,
                tools=[{"type": "function", "function": function} for function in functions],
                add_generation_prompt=prompt,
                tokenize=False,
            )
        )
    except Exception:
        # A template is a program that may raise any exception for messages that it does not support.
        return None


def _special(tokenization: Tokenization) -> re.Pattern[str]:
    """Return a pattern that matches the special tokens."""
    tokens = tokenization.tokenizer.convert_ids_to_tokens(sorted(tokenization.special))
    texts = sorted((text for text in tokens if text), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts)) or r"(?!)")


def _common_prefix_length(text: str, other: str, special: re.Pattern[str]) -> int:
    """Return the length of the common prefix of two texts, without splitting words or markers."""
    return sum(map(len, _common_prefix(_pieces(text, special), _pieces(other, special))))


def _common_suffix(text: str, other: str, special: re.Pattern[str]) -> str:
    """Return the common suffix of two texts, without splitting words or markers."""
    return "".join(_common_prefix(_pieces(text, special)[::-1], _pieces(other, special)[::-1])[::-1])


def _common_prefix(pieces: list[str], others: list[str]) -> list[str]:
    pairs = zip(pieces, others, strict=False)
    return [piece for piece, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _pieces(text: str, special: re.Pattern[str]) -> list[str]:
    return re.findall(f"(?:{special.pattern})|{_MARKER}|\\w+|.", text, re.DOTALL)


def _matches_another_call(found: CallFormat, call: str, message_end: str) -> bool:
    """Return whether `found` is also the format of another call, without the end of its message."""
    if not call.endswith(message_end):
        return False
    arguments = found.arguments(_OTHER_NAME)(call.removesuffix(message_end))
    if arguments is None:
        return False
    try:
        value = json.loads(arguments)
    except ValueError:
        return False
    if value != _OTHER_ARGUMENTS or found.spacing["whitespace_flexible"]:
        return bool(value == _OTHER_ARGUMENTS)
    separators = found.spacing["item_separator"], found.spacing["key_separator"]
    return arguments == json.dumps(value, separators=separators)


def _parse_call(call: str) -> CallFormat | None:
    """Return the format of a call that contains the name and the arguments as JSON, else None."""
    for brace in re.finditer("{", call):
        try:
            value, end = json.JSONDecoder().raw_decode(call, brace.start())
        except ValueError:
            continue
        if value == _ARGUMENTS and _NAME in call[: brace.start()]:
            written = call[brace.start() : end]
            spaced = re.search(r'"first_argument"(\s*:\s*)1(\s*,\s*)"second_argument"', written)
            assert spaced is not None
            key, item = spaced.groups()
            regular = written == json.dumps(_ARGUMENTS, separators=(item, key))
            spacing: dict[str, Any] = {"whitespace_flexible": not regular}
            if regular:
                spacing |= {"item_separator": item, "key_separator": key}
            return CallFormat(call[: brace.start()], call[end:], spacing)
    return None


def _move_special_tokens(found: CallFormat, special: re.Pattern[str]) -> CallFormat | None:
    """Move special tokens at the beginning of a format to its remark. Return None if there are others."""
    began = re.match(rf"(?:(?:{special.pattern})\s*)+", found.before)
    before = found.before[began.end() :] if began else found.before
    if special.search(before):
        return None
    remark = (
        f"the prompt must end with {began[0]!r}, because the chat template begins a tool call with it"
        if began
        else None
    )
    return found._replace(before=before, remark=remark)


def _literals(text: str, name: str) -> list[str]:
    """Convert a fixed text of a tool call to Lark string literals, with a pattern in place of the id of the call.

    Args:
        text: Text before or after the arguments, with placeholders for the name of the tool and the id of the call.
        name: Name of the tool, which replaces its placeholder.

    Returns:
        Literals and patterns, in the order of the text.
    """
    parts = text.replace(_NAME, name).split(_ID)
    literals = [json.dumps(part, ensure_ascii=False) if part else "" for part in parts]
    return [literal for literal in f"\0/{_IDENTIFIER}/\0".join(literals).split("\0") if literal]
