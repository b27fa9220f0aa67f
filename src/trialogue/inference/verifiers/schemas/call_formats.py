"""How a model writes the call of a tool, read off its chat template: what stands around the name and the arguments."""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from trialogue.models.tokenization import Tokenization

_NAME, _ID, _CONTENT = "name_of_the_function", "a1b2c3d4e", "\N{SNOWMAN}"
_ARGUMENTS = {"first_argument": 1, "second_argument": [2, 3]}
_IDENTIFIER = "[a-zA-Z0-9]{9}"


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
    # Some templates write arguments out as they are, some as the JSON text that they expect.
    for arguments in (_ARGUMENTS, json.dumps(_ARGUMENTS)):
        function = {"name": _NAME, "arguments": arguments}
        call = {"type": "function", "id": _ID, "function": function}
        written = _rendered(tokenization, {"content": "", "tool_calls": [call]})
        answer = _rendered(tokenization, {"content": _CONTENT})
        if written is None or answer is None:
            continue
        start = _common(written, answer)
        call_text, answer_text = written[start:], answer[start:]
        end = _common(call_text[::-1], answer_text[::-1])
        found = _found(call_text[: len(call_text) - end])
        if found is not None:
            return _without_special(found, tokenization)
    return None


def _rendered(tokenization: Tokenization, answer: dict[str, Any]) -> str | None:
    """A question and `answer` as the chat template writes them; None where it does not."""
    tokenizer = tokenization.tokenizer
    if not tokenizer.chat_template:
        return None
    parameters = {"type": "object", "properties": {name: {"type": "integer"} for name in _ARGUMENTS}}
    function = {"name": _NAME, "description": "A function.", "parameters": parameters}
    try:
        return str(
            tokenizer.apply_chat_template(
                [{"role": "user", "content": "A question."}, {"role": "assistant", **answer}],
                tools=[{"type": "function", "function": function}],
                tokenize=False,
            )
        )
    except Exception:
        # A template is a program of the model's, and may refuse what it does not know in any way.
        return None


def _common(text: str, other: str) -> int:
    """How many characters `text` and `other` begin with that are the same."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((place for place, (one, two) in pairs if one != two), min(len(text), len(other)))


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


def _without_special(found: CallFormat, tokenization: Tokenization) -> CallFormat | None:
    special = [
        text for text in tokenization.tokenizer.convert_ids_to_tokens(sorted(tokenization.special)) if text
    ]
    marks = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True))) or r"(?!)")
    # What ends the message is no part of the call.
    behind = marks.split(found.behind, maxsplit=1)[0]
    began = re.match(rf"(?:(?:{marks.pattern})\s*)+", found.before)
    before = found.before[began.end() :] if began else found.before
    if marks.search(before):
        return None
    remark = (
        f"the prompt has to end in {began[0]!r}, with which the chat template begins a call"
        if began
        else None
    )
    return found._replace(before=before, behind=behind, remark=remark)


def _literals(text: str, name: str) -> list[str]:
    """`text` in llguidance's dialect of Lark, around any id."""
    parts = text.replace(_NAME, name).split(_ID)
    literals = [json.dumps(part, ensure_ascii=False) if part else "" for part in parts]
    return [literal for literal in f"\0/{_IDENTIFIER}/\0".join(literals).split("\0") if literal]
