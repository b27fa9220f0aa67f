"""Texts that are scored: options of `trialogue score`, and the file with the texts."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tyro.conf import arg

from trialogue.errors import InputError, require_model, require_text
from trialogue.generation.prompts import Prompt, json_value, parse_prompt

_EXPECTED_FORM = (
    'use an object with a text as "text", and optionally "prompt" or "messages", "tokens" and "id"'
)


@dataclass(frozen=True)
class ScoreInputs:
    """Options that select the model and the texts."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Load this model: a Hugging Face id, a folder, a GGUF file, or a name from `trialogue models list`."""
    texts: Annotated[str | None, arg(metavar="FILE")] = None
    """Read texts from this JSON Lines file, or from standard input if FILE is -. Each line is a string, or an object
    with a "text". Optional keys: "prompt" or "messages" (what the text continues), "tokens" (token ids of the text,
    which are then scored instead of its usual tokenization), "id". Files of `trialogue generate` have this form."""
    chat: bool = False
    """Apply the model's chat template to each prompt."""
    confidence: bool = False
    """Compute the probability of each field of a JSON text among the values that the grammar allows. A field with more
    than 256 allowed values, such as a free string, is drawn again 16 times to estimate it."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write the JSON Lines to FILE, and replace it (default: standard output)."""

    def __post_init__(self) -> None:
        require_model(self.model)
        if self.texts is None:
            raise InputError("texts", None, "use --texts FILE.jsonl")


class GivenText(NamedTuple):
    """A text to score.

    Attributes:
        prompt: Prompt that the text continues. Its field `text` is empty if there is none.
        text: The text.
        tokens: Token ids of the text, or None if its usual tokenization is scored.
        copied: Fields of the line that identify the text, "id" and "sample", which are copied to its record.
    """

    prompt: Prompt
    text: str
    tokens: list[int] | None
    copied: dict[str, Any]


def read_texts(source: str) -> list[GivenText]:
    """Read texts from a JSON Lines file.

    Args:
        source: Path of the file, or "-" for standard input.

    Raises:
        InputError: If the file cannot be read or has no texts, or a line is invalid. The message contains file and
            line.
    """
    if source == "-":
        return _parse_lines("stdin", sys.stdin.buffer)
    try:
        with Path(source).open("rb") as file:
            return _parse_lines(source, file)
    except OSError as error:
        raise InputError("texts", source, f"it cannot be read: {error.strerror or error}") from None


def _parse_lines(source: str, lines: Iterable[bytes]) -> list[GivenText]:
    texts = [
        _parse_text(line, number - 1, f"{source}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not texts:
        raise InputError("texts", source, "use a file with texts: it contains none")
    return texts


def _parse_text(line: bytes, place: int, where: str) -> GivenText:
    try:
        value = json_value(line)
    except UnicodeDecodeError:
        raise InputError("texts", where, "the line is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise InputError("texts", where, f"the line is not JSON: {error}") from None
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise InputError("texts", where, _EXPECTED_FORM)
    require_text("texts", value["text"], where)
    tokens = value.get("tokens")
    if tokens is not None and not (
        isinstance(tokens, list) and all(type(token) is int and token >= 0 for token in tokens)
    ):
        raise InputError("texts", where, 'its "tokens" must be a list of token ids')
    named = {key: value[key] for key in ("prompt", "messages", "tools", "id") if key in value}
    if "messages" not in named:
        named.setdefault("prompt", "")
    prompt = parse_prompt(named, place, where)
    copied = {"id": prompt.id} | ({"sample": value["sample"]} if "sample" in value else {})
    return GivenText(prompt, value["text"], tokens, copied)
