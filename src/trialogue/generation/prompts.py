"""Prompts as a user gives them: texts and conversations, one by one or in a file with one JSON value per line."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from trialogue.errors import InputError, require_text

Answer = TypeVar("Answer")

_SAMPLES_OF_A_PROMPT = 1 << 32
_PLACES = 1 << 31
_KEYS = ("prompt", "messages", "tools", "rule", "metadata", "id")
_FORM = 'give an object with a text as "prompt" or a list as "messages", or a JSON string'


@dataclass(frozen=True)
class Prompt:
    """A text or a conversation to continue, and what its samples are filed under: an id of the user's own, or a place.

    Of a conversation `messages` holds what its line does and `text` what its last message says; `tools` are definitions
    for the chat template. `rule` names verifiers of this prompt alone, whose files lie relative to `folder`, `metadata`
    is handed on to its records, `where` tells file and line for errors.
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
        """What records repeat of the prompt."""
        named: dict[str, Any] = (
            {"prompt": self.text} if self.messages is None else {"messages": self.messages}
        )
        others = {"tools": self.tools, "rule": list(self.rule) or None, "metadata": self.metadata}
        return named | {name: value for name, value in others.items() if value is not None}

    def stream(self, sample: int) -> int:
        """What names the random stream of its sample number `sample`, from 0 to 2**63 - 1.

        It depends on the id alone, and not on which other prompts there are: prompts may be added, left out and put
        in another order, and every sample stays what it was.
        """
        if isinstance(self.id, int) and 0 <= self.id < _PLACES:
            return self.id * _SAMPLES_OF_A_PROMPT + sample
        from trialogue.randomness import seed_of

        # As JSON, so that "1" is not 1.
        return (seed_of(0, "prompt", json.dumps(self.id)) + sample) % (_PLACES * _SAMPLES_OF_A_PROMPT)


def repeated(record: dict[str, Any]) -> dict[str, Any]:
    """What a `record` repeats of its prompt."""
    return {name: record[name] for name in _KEYS if name != "id" and name in record}


def numbered(texts: Sequence[str]) -> list[Prompt]:
    """Prompts with their places as ids."""
    return [Prompt(place, text) for place, text in enumerate(texts)]


def read_prompts(source: str) -> list[Prompt]:
    """Prompts of the file `source`, or of standard input where that is "-".

    A line is a plain JSON string, or an object with a text as "prompt" or a conversation as "messages". Optionally it
    has an "id" (a string or a whole number), a "rule" (a verifier as `--verifier` names it, an object of one such kind
    and its content, or a list of these; files that it names lie relative to the folder of `source`, or to the working
    directory for standard input), "metadata" (an object) and, beside messages, "tools". Empty lines are skipped.
    Raises `InputError` naming file and line for one that is none of that, for a key of any other name, for an id that
    comes twice, and for a file that cannot be read or holds no prompt.
    """
    if source == "-":
        return _parsed("stdin", sys.stdin.buffer, Path())
    try:
        with Path(source).open("rb") as file:
            return _parsed(source, file, Path(source).parent)
    except OSError as error:
        raise InputError("prompts", source, f"it cannot be read: {error.strerror or error}") from None


def _parsed(source: str, lines: Iterable[bytes], folder: Path) -> list[Prompt]:
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
        prompt = replace(_prompt(value, len(prompts), where), folder=folder)
        if prompt.id in seen:
            raise InputError(
                "prompts", where, f"the id {prompt.id!r} is that of line {seen[prompt.id]} already"
            )
        seen[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise InputError("prompts", source, "it holds no prompt")
    return prompts


def json_value(text: bytes) -> Any:
    """The JSON value that UTF-8 `text` is; raises `ValueError`, or `RecursionError` for one that is nested too deep."""
    return json.loads(text.decode("utf-8-sig"), parse_constant=_no_number, parse_float=_finite)


def _no_number(constant: str) -> NoReturn:
    """JSON has no NaN and no Infinity, and records that repeat them would be none."""
    raise ValueError(f"{constant} is no number of JSON")


def _finite(number: str) -> float:
    """JSON bounds no numbers, but what is too large for a double would be repeated as Infinity."""
    value = float(number)
    return value if math.isfinite(value) else _no_number(f"{number} (beyond the range of a double)")


def _prompt(value: object, place: int, where: str) -> Prompt:
    if isinstance(value, str):
        value = {"prompt": value}
    if not isinstance(value, dict):
        raise InputError("prompts", where, _FORM)
    for key in value:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, n=1)
            known = 'an object has a "prompt" or "messages", and optionally "tools", a "rule", "metadata" and an "id"'
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
    rule = _rule(value.get("rule"), where)
    if "messages" not in value:
        text = value.get("prompt")
        if not isinstance(text, str):
            raise InputError("prompts", where, _FORM)
        require_text("prompts", text, where)
        if "tools" in value:
            raise InputError("prompts", where, 'its "tools" are for "messages", and it has none')
        return Prompt(name, text, rule=rule, metadata=metadata, where=where)
    if "prompt" in value:
        raise InputError("prompts", where, 'it has a "prompt" and "messages": leave out one of them')
    messages, tools = value["messages"], value.get("tools")
    # Models bring in torch, which plain texts need not wait for.
    from trialogue.models.messages import conversation

    last = located(where, lambda: conversation(messages))[-1]["content"]
    located(where, lambda: require_tools(tools))
    require_text("messages in prompts", json.dumps([messages, tools], ensure_ascii=False), where)
    return Prompt(name, last, messages, tools, rule, metadata, where)


def _rule(value: object, where: str) -> tuple[str, ...]:
    """The specs of a prompt's own verifiers."""
    specs = []
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(one, dict) and len(one) == 1:
            [(kind, content)] = one.items()
            one = f"{kind}:{content if isinstance(content, str) else json.dumps(content)}"
        if not isinstance(one, str):
            hint = 'its "rule" must be KIND:CONTENT as --verifier has it, {KIND: CONTENT}, or a list of these'
            raise InputError("prompts", where, hint)
        require_text("rule in prompts", one, where)
        specs.append(one)
    return tuple(specs)


def require_tools(tools: object) -> None:
    """Raise `InputError` for what is no list of definitions of tools with parameters; None is none at all."""
    if tools is None:
        return
    from trialogue.verifiers.schemas.definitions import tool

    hint = 'write each as {"type": "function", "function": {"name": NAME, "parameters": SCHEMA}}'
    if not isinstance(tools, list) or not tools:
        raise InputError("tools", tools, f"give a list of definitions: {hint}")
    for place, one in enumerate(tools):
        defined = tool(one)
        if defined is None:
            raise InputError(f"tools[{place}]", one, hint)
        function = one.get("function", one)
        if not any(
            isinstance(function.get(key), dict) for key in ("parameters", "input_schema", "inputSchema")
        ):
            named = f'the tool {defined.name!r} has no "parameters", which templates write'
            raise InputError(f"tools[{place}]", one, f"{named}: {hint}")


def located(where: str, ask: Callable[[], Answer]) -> Answer:
    """What `ask` answers; its `InputError` names file and line of the prompt as well, where there are any."""
    try:
        return ask()
    except InputError as error:
        if not where:
            raise
        raise InputError("prompts", where, str(error)) from error
