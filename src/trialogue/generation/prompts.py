"""Prompts of a run: texts and conversations from the command line or a JSON Lines file."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from trialogue.errors import InputError, require_text

Result = TypeVar("Result")

_SAMPLES_OF_A_PROMPT = 1 << 32
_PLACES = 1 << 31
_KEYS = ("prompt", "messages", "tools", "rule", "metadata", "id")
_EXPECTED_FORM = 'use an object with a text as "prompt" or a list as "messages", or a JSON string'


@dataclass(frozen=True)
class Prompt:
    """A text or a conversation for which completions are generated.

    Args:
        id: Identifier of the prompt, by default its index. Together with the seed, it determines the random
            numbers of the samples.
        text: Text to continue. For a conversation, the text of the last message.
        messages: Messages of a conversation in the format of chat templates, or None.
        tools: Tool definitions that are passed to the chat template, or None.
        rule: Specs of verifiers that apply only to this prompt. A spec is a text KIND:CONTENT, for example
            "regex:[0-9]+".
        metadata: JSON object that is copied to the output records.
        where: File and line of the prompt, for error messages. Empty if it was not read from a file.
        folder: Folder to which the file paths in `rule` are relative.
    """

    id: int | str
    text: str
    messages: list[dict[str, Any]] | None = None
    tools: list[Any] | None = None
    rule: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    where: str = field(default="", compare=False)
    folder: Path = field(default=Path(), compare=False)

    def given(self) -> dict[str, Any]:
        """Return the fields of the prompt that are copied to its output records, as JSON values."""
        named: dict[str, Any] = (
            {"prompt": self.text} if self.messages is None else {"messages": self.messages}
        )
        others = {"tools": self.tools, "rule": list(self.rule) or None, "metadata": self.metadata}
        return named | {name: value for name, value in others.items() if value is not None}

    def stream(self, sample: int) -> int:
        """Return the id of the random stream of one sample.

        The id depends only on the id of the prompt. Adding, removing or reordering other prompts therefore
        does not change the samples.

        Args:
            sample: Index of the sample among the samples of this prompt.

        Returns:
            Number from 0 to 2**63 - 1.
        """
        if isinstance(self.id, int) and 0 <= self.id < _PLACES:
            return self.id * _SAMPLES_OF_A_PROMPT + sample
        from trialogue.randomness import derive_seed

        # The JSON form distinguishes "1" from 1.
        return (derive_seed(0, "prompt", json.dumps(self.id)) + sample) % (_PLACES * _SAMPLES_OF_A_PROMPT)


def copied_fields(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an output record that were copied from its prompt.

    Args:
        record: Output record of a sample.
    """
    return {name: record[name] for name in _KEYS if name != "id" and name in record}


def prompts_from_texts(texts: Sequence[str]) -> list[Prompt]:
    """Create one prompt per text. The id of a prompt is its index, starting with 0.

    Args:
        texts: Texts to continue.
    """
    return [Prompt(place, text) for place, text in enumerate(texts)]


def read_prompts(source: str) -> list[Prompt]:
    """Read prompts from a JSON Lines file.

    Each line is a JSON string, an object with the text as "prompt", or an object with a conversation as "messages".
    Empty lines are skipped. Optional keys of an object are

    - "id": a string or a whole number,
    - "rule": a verifier spec KIND:CONTENT, an object {KIND: CONTENT}, or a list of these,
    - "metadata": an object,
    - "tools": tool definitions, only with "messages".

    Relative paths in a "rule" refer to the folder of the file, or to the working directory for standard input.

    Args:
        source: Path of the file, or "-" for standard input.

    Raises:
        InputError: If the file cannot be read or has no prompts. Also if a line is invalid, has an unknown key or
            repeats an id. The message contains file and line.
    """
    if source == "-":
        return _parse_lines("stdin", sys.stdin.buffer, Path())
    try:
        with Path(source).open("rb") as file:
            return _parse_lines(source, file, Path(source).parent)
    except OSError as error:
        raise InputError("prompts", source, f"it cannot be read: {error.strerror or error}") from None


def _parse_lines(source: str, lines: Iterable[bytes], folder: Path) -> list[Prompt]:
    prompts: list[Prompt] = []
    seen: dict[int | str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{source}:{number}"
        try:
            value = json_value(line)
        except UnicodeDecodeError:
            raise InputError("prompts", where, "the line is not UTF-8 text") from None
        except (ValueError, RecursionError) as error:
            raise InputError("prompts", where, f"the line is not JSON: {error}") from None
        prompt = replace(parse_prompt(value, len(prompts), where), folder=folder)
        if prompt.id in seen:
            raise InputError(
                "prompts", where, f"use another id: {prompt.id!r} is the id of line {seen[prompt.id]}"
            )
        seen[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise InputError("prompts", source, "use a file with prompts: it contains none")
    return prompts


def json_value(text: bytes) -> Any:
    """Parse JSON text and reject numbers that are not finite.

    Args:
        text: UTF-8 bytes.

    Raises:
        ValueError: If `text` is not UTF-8 or not JSON, or contains NaN or an infinite number.
        RecursionError: If the value is nested too deeply.
    """
    return json.loads(text.decode("utf-8-sig"), parse_constant=_reject_number, parse_float=_parse_finite)


def _reject_number(constant: str) -> NoReturn:
    """Reject NaN and Infinity, which are not part of JSON."""
    raise ValueError(f"{constant} is not a JSON number")


def _parse_finite(number: str) -> float:
    """Return a number as a float. Numbers beyond the range of a double are rejected."""
    value = float(number)
    return value if math.isfinite(value) else _reject_number(f"{number} (beyond the range of a double)")


def parse_prompt(value: object, place: int, where: str) -> Prompt:
    """Convert the JSON value of a line to a prompt.

    Args:
        value: The value.
        place: Index of the prompt, which is its id if the value has none.
        where: File and line, for error messages.

    Raises:
        InputError: If the value has an unknown key or a value of the wrong form.
    """
    if isinstance(value, str):
        value = {"prompt": value}
    if not isinstance(value, dict):
        raise InputError("prompts", where, _EXPECTED_FORM)
    for key in value:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, n=1)
            known = 'use "prompt" or "messages", and optionally "tools", "rule", "metadata" and "id"'
            hint = f'did you mean "{close[0]}"?' if close else known
            raise InputError(
                "prompts", where, f"the key {json.dumps(key, ensure_ascii=False)} is unknown: {hint}"
            )
    name = value.get("id", place)
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InputError("prompts", where, 'its "id" must be a string or a whole number')
    require_text("id in prompts", str(name), where)
    metadata = value.get("metadata")
    if not isinstance(metadata, dict | None):
        raise InputError("prompts", where, 'its "metadata" must be an object')
    require_text("metadata in prompts", json.dumps(metadata, ensure_ascii=False), where)
    rule = _parse_rule(value.get("rule"), where)
    if "messages" not in value:
        text = value.get("prompt")
        if not isinstance(text, str):
            raise InputError("prompts", where, _EXPECTED_FORM)
        require_text("prompts", text, where)
        if "tools" in value:
            raise InputError("prompts", where, 'leave out "tools", or use "messages" instead of "prompt"')
        return Prompt(name, text, rule=rule, metadata=metadata, where=where)
    if "prompt" in value:
        raise InputError("prompts", where, 'leave out "prompt" or "messages": only one of them is allowed')
    messages, tools = value["messages"], value.get("tools")
    # This import loads torch, which plain texts do not need.
    from trialogue.models.messages import validate_conversation

    last = with_location(where, lambda: validate_conversation(messages))[-1]["content"]
    with_location(where, lambda: require_tools(tools))
    require_text("messages in prompts", json.dumps([messages, tools], ensure_ascii=False), where)
    return Prompt(name, last, messages, tools, rule, metadata, where)


def _parse_rule(value: object, where: str) -> tuple[str, ...]:
    """Return the specs of the additional verifiers of a prompt."""
    specs = []
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(one, dict) and len(one) == 1:
            [(kind, content)] = one.items()
            one = f"{kind}:{content if isinstance(content, str) else json.dumps(content)}"
        if not isinstance(one, str):
            hint = 'its "rule" must be KIND:CONTENT as in --verifier, {KIND: CONTENT}, or a list of these'
            raise InputError("prompts", where, hint)
        require_text("rule in prompts", one, where)
        specs.append(one)
    return tuple(specs)


def require_tools(tools: object) -> None:
    """Check the tool definitions of a prompt.

    Args:
        tools: Value of the field "tools". None is accepted.

    Raises:
        InputError: If `tools` is not a non-empty list of tool definitions with parameters.
    """
    if tools is None:
        return
    from trialogue.verifiers.schemas.definitions import parse_tool

    hint = 'write each as {"type": "function", "function": {"name": NAME, "parameters": SCHEMA}}'
    if not isinstance(tools, list) or not tools:
        raise InputError("tools", tools, f"use a list of definitions: {hint}")
    for place, one in enumerate(tools):
        defined = parse_tool(one)
        if defined is None:
            raise InputError(f"tools[{place}]", one, hint)
        function = one.get("function", one)
        if not any(
            isinstance(function.get(key), dict) for key in ("parameters", "input_schema", "inputSchema")
        ):
            missing = f'the tool {defined.name!r} has no "parameters"'
            raise InputError(f"tools[{place}]", one, f"{hint}: {missing}")


def with_location(where: str, call: Callable[[], Result]) -> Result:
    """Call a function, and add file and line of a prompt to the message of an `InputError`.

    Args:
        where: File and line. If empty, the error is not changed.
        call: Function without arguments.

    Returns:
        The result of `call`.
    """
    try:
        return call()
    except InputError as error:
        if not where:
            raise
        raise InputError("prompts", where, str(error)) from error
