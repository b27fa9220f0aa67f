"""Detection of the text format in which a model calls tools, from its chat template."""

import json
import re
from collections.abc import Callable, Mapping
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
    separator: str | None = None
    """Text between two calls in one answer, or None if an answer can contain only one call."""

    def grammar(self, name: str, arguments: str) -> str:
        """Return the right-hand side of a Lark grammar rule that matches a call of a tool.

        Args:
            name: Name of the tool.
            arguments: Name of the grammar rule that matches the arguments.
        """
        parts = [*_literals(self.before, name), arguments, *_literals(self.behind, name)]
        return " ".join(parts)

    def schema(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a JSON Schema of the calls of a tool, or None if a call is not a JSON object.

        Args:
            name: Name of the tool.
            parameters: JSON Schema of its arguments.
        """
        try:
            call = json.loads(f"{self.before}{{}}{self.behind}".replace(_NAME, name))
        except ValueError:
            return None
        if not isinstance(call, dict) or _ID in call.values():
            return None
        # References such as "#/$defs/NAME" refer to the root of the schema.
        shared = {key: parameters[key] for key in ("$defs", "definitions") if key in parameters}
        arguments = {key: value for key, value in parameters.items() if key not in shared}
        properties = {key: arguments if value == {} else {"const": value} for key, value in call.items()}
        required = {"required": list(call), "additionalProperties": False}
        return {"type": "object", "properties": properties, **required, **shared}

    def arguments(self, name: str) -> Callable[[str], str | None]:
        """Return a function that extracts the JSON text of the arguments from a call of a tool.

        Args:
            name: Name of the tool.

        Returns:
            Function from the text of a call to the text of its arguments. It returns None if the text is not a call of
            this tool.
        """
        before, behind = self._patterns(name)
        pattern = re.compile(f"{before}(.*){behind}", re.DOTALL)

        def extract(text: str) -> str | None:
            match = pattern.fullmatch(text)
            return None if match is None else match[1]

        return extract

    def first_call(self, name: str) -> Callable[[str, int], tuple[str, int] | None]:
        """Return a function that extracts the JSON text of the arguments from a call of a tool within a text.

        Args:
            name: Name of the tool.

        Returns:
            Function from a text and the place of a call in it to the text of its arguments and the place after the
            call. It returns None if no call of this tool begins at the place.
        """
        before, behind = map(re.compile, self._patterns(name))

        def extract(text: str, start: int) -> tuple[str, int] | None:
            if (begin := before.match(text, start)) is None:
                return None
            try:
                _, end = json.JSONDecoder().raw_decode(text, text.index("{", begin.end()))
            except (ValueError, RecursionError):
                return None
            finish = behind.match(text, end)
            return None if finish is None else (text[begin.end() : end], finish.end())

        return extract

    def _patterns(self, name: str) -> tuple[str, str]:
        """Return regular expressions that match the texts before and after the arguments."""
        before, behind = (
            re.escape(text.replace(_NAME, name)).replace(_ID, _IDENTIFIER)
            for text in (self.before, self.behind)
        )
        return before, behind


def json_format(spacing: dict[str, Any], remark: str) -> CallFormat:
    """Return the format in which a tool call is the JSON object `{"name":"...","arguments":...}`.

    Args:
        spacing: Whitespace options of llguidance for the arguments.
        remark: Warning to be shown to the user.
    """
    return CallFormat(f'{{"name":"{_NAME}","arguments":', "}", spacing, remark, "\n")


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
        first, second = (_NAME, _ID, form(_ARGUMENTS)), (_OTHER_NAME, _OTHER_ID, form(_OTHER_ARGUMENTS))
        written, other = (_render(tokenization, _message(call)) for call in (first, second))
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
            both = _render(tokenization, _message(first, second)) or ""
            one, two, several = (text[start:].removesuffix(message_end) for text in (written, other, both))
            found = found._replace(separator=_separator(one, two, several))
            return _move_special_tokens(found, special)
    return None


def _separator(one: str, two: str, both: str) -> str | None:
    """Return the white space between two calls in the text of `both`, or None if they are written in another way."""
    if len(both) < len(one) + len(two) or not (both.startswith(one) and both.endswith(two)):
        return None
    between = both[len(one) : len(both) - len(two)]
    return between if not between.strip() else None


def _message(*calls: tuple[str, str, object]) -> dict[str, Any]:
    """Return a message with tool calls, each given by name, id and arguments."""
    functions = [
        {"type": "function", "id": identifier, "function": {"name": name, "arguments": arguments}}
        for name, identifier, arguments in calls
    ]
    return {"content": "", "tool_calls": functions}


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
    # A text cannot contain the special tokens with which a second call would begin.
    separator = None if began else found.separator
    return found._replace(before=before, remark=remark, separator=separator)


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
