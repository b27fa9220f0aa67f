"""How a model writes the call of a tool, read off its chat template: what stands around the name and the arguments."""

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
"""What templates commonly mark the parts of a message with; nothing in it stands for itself."""


class CallFormat(NamedTuple):
    """What stands before and behind the arguments of a call, with marks for the tool's name and the call's id."""

    before: str
    behind: str
    spacing: dict[str, Any]
    """What llguidance is told of white space in the arguments"""
    remark: str | None = None
    """What a user should know of it"""

    def grammar(self, name: str, arguments: str) -> str:
        """The call of the tool `name`, whose `arguments` are a rule, in llguidance's dialect of Lark."""
        parts = [*_literals(self.before, name), arguments, *_literals(self.behind, name)]
        return " ".join(parts)

    def arguments(self, name: str) -> Callable[[str], str | None]:
        """The function from a text to the arguments of the call of the tool `name` that it is, else to None."""
        before, behind = (
            re.escape(text.replace(_NAME, name)).replace(_ID, _IDENTIFIER)
            for text in (self.before, self.behind)
        )
        pattern = re.compile(f"{before}(.*){behind}", re.DOTALL)

        def found(text: str) -> str | None:
            match = pattern.fullmatch(text)
            return None if match is None else match[1]

        return found


def plain_format(spacing: dict[str, Any], remark: str) -> CallFormat:
    """A JSON object of the name and the arguments."""
    return CallFormat(f'{{"name":"{_NAME}","arguments":', "}", spacing, remark)


def stated_format(tokenization: Tokenization) -> CallFormat | None:
    """The format of the tokenizer's chat template; None where it has none, or one that no text can have.

    A special token is in no text: one that a call begins with has to be in the prompt, others have no place.
    """
    history, prompt = _rendered(tokenization, None), _rendered(tokenization, None, prompt=True)
    answer, special = _rendered(tokenization, {"content": _TEXTUAL}), _special(tokenization)
    # Some templates write arguments out as they are, some as the JSON text that they expect.
    for form in (dict, json.dumps):
        written = _rendered(tokenization, _call(_NAME, _ID, form(_ARGUMENTS)))
        other = _rendered(tokenization, _call(_OTHER_NAME, _OTHER_ID, form(_OTHER_ARGUMENTS)))
        if written is None or other is None or answer is None:
            continue
        if prompt is not None and prompt != history and written.startswith(prompt):
            start = len(prompt)
        else:
            start = _in_common(written, answer, special)
        found = _found(written[start:])
        if found is None:
            continue
        end = special.search(found.behind)
        message_end = found.behind[end.start() :] if end else _ending(found.behind, answer, special)
        found = found._replace(behind=found.behind.removesuffix(message_end))
        if other.startswith(written[:start]) and _holds_for_another(found, other[start:], message_end):
            return _without_special(found, special)
    return None


def _call(name: str, identifier: str, arguments: object) -> dict[str, Any]:
    call = {"type": "function", "id": identifier, "function": {"name": name, "arguments": arguments}}
    return {"content": "", "tool_calls": [call]}


def _rendered(tokenization: Tokenization, answer: dict[str, Any] | None, prompt: bool = False) -> str | None:
    """A question and its `answer`, or the `prompt` for one, as the template writes them; None where it does not."""
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
        # A template is a program of the model's, and may refuse what it does not know in any way.
        return None


def _special(tokenization: Tokenization) -> re.Pattern[str]:
    """What matches the special tokens."""
    tokens = tokenization.tokenizer.convert_ids_to_tokens(sorted(tokenization.special))
    texts = sorted((text for text in tokens if text), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts)) or r"(?!)")


def _in_common(text: str, other: str, special: re.Pattern[str]) -> int:
    """How many characters `text` and `other` begin with that are the same, in whole words and markers."""
    return sum(map(len, _same(_pieces(text, special), _pieces(other, special))))


def _ending(text: str, other: str, special: re.Pattern[str]) -> str:
    """What `text` and `other` end in that is the same, in whole words and markers."""
    return "".join(_same(_pieces(text, special)[::-1], _pieces(other, special)[::-1])[::-1])


def _same(pieces: list[str], others: list[str]) -> list[str]:
    pairs = zip(pieces, others, strict=False)
    return [piece for piece, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _pieces(text: str, special: re.Pattern[str]) -> list[str]:
    return re.findall(f"(?:{special.pattern})|{_MARKER}|\\w+|.", text, re.DOTALL)


def _holds_for_another(found: CallFormat, call: str, message_end: str) -> bool:
    """Whether the other `call`, up to the end of its message, is one in the format `found`."""
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


def _found(call: str) -> CallFormat | None:
    """The format of the `call`, where it has the name and the arguments as JSON."""
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


def _without_special(found: CallFormat, special: re.Pattern[str]) -> CallFormat | None:
    began = re.match(rf"(?:(?:{special.pattern})\s*)+", found.before)
    before = found.before[began.end() :] if began else found.before
    if special.search(before):
        return None
    remark = (
        f"the prompt has to end in {began[0]!r}, with which the chat template begins a call"
        if began
        else None
    )
    return found._replace(before=before, remark=remark)


def _literals(text: str, name: str) -> list[str]:
    """`text` in llguidance's dialect of Lark, around any id."""
    parts = text.replace(_NAME, name).split(_ID)
    literals = [json.dumps(part, ensure_ascii=False) if part else "" for part in parts]
    return [literal for literal in f"\0/{_IDENTIFIER}/\0".join(literals).split("\0") if literal]
