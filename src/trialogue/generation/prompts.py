"""Prompts as a user gives them: texts, or a file with one JSON value per line."""

import json
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from trialogue.errors import InputError, require_text

_SAMPLES_OF_A_PROMPT = 1 << 32
_PLACES = 1 << 31
_KEYS = ("prompt", "id")


class Prompt(NamedTuple):
    """A text to continue, and what its samples are filed under: an id of the user's own, or the place among prompts."""

    id: int | str
    text: str

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


def numbered(texts: Sequence[str]) -> list[Prompt]:
    """Prompts with their places as ids."""
    return [Prompt(place, text) for place, text in enumerate(texts)]


def read_prompts(source: str) -> list[Prompt]:
    """Prompts of the file `source`, or of standard input where that is "-".

    A line is an object with the text as "prompt" and optionally an "id" (a string or a whole number), or a plain JSON
    string; empty lines are skipped. Raises `InputError` naming file and line for one that is neither, for a key of any
    other name, for an id that comes twice, and for a file that cannot be read or holds no prompt.
    """
    if source == "-":
        return _parsed("stdin", sys.stdin.buffer)
    try:
        with Path(source).open("rb") as file:
            return _parsed(source, file)
    except OSError as error:
        raise InputError("prompts", source, f"it cannot be read: {error.strerror or error}") from None


def _parsed(source: str, lines: Iterable[bytes]) -> list[Prompt]:
    prompts: list[Prompt] = []
    seen: dict[int | str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{source}:{number}"
        try:
            value = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise InputError("prompts", where, "the line is not UTF-8 text") from None
        except (ValueError, RecursionError) as error:
            raise InputError("prompts", where, f"the line is not JSON: {error}") from None
        prompt = _prompt(value, len(prompts), where)
        if prompt.id in seen:
            raise InputError(
                "prompts", where, f"the id {prompt.id!r} is that of line {seen[prompt.id]} already"
            )
        seen[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise InputError("prompts", source, "it holds no prompt")
    return prompts


def _prompt(value: object, place: int, where: str) -> Prompt:
    if isinstance(value, str):
        value = {"prompt": value}
    if not isinstance(value, dict):
        raise InputError("prompts", where, 'give an object with a text as "prompt", or a JSON string')
    for key in value:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, n=1)
            hint = (
                f'did you mean "{close[0]}"?' if close else 'an object has a "prompt" and optionally an "id"'
            )
            raise InputError(
                "prompts", where, f"the key {json.dumps(key, ensure_ascii=False)} is unknown: {hint}"
            )
    if not isinstance(value.get("prompt"), str):
        raise InputError("prompts", where, 'give an object with a text as "prompt", or a JSON string')
    name = value.get("id", place)
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InputError("prompts", where, 'its "id" must be a string or a whole number')
    require_text("prompts", value["prompt"], where)
    require_text("id in prompts", str(name), where)
    return Prompt(name, value["prompt"])
