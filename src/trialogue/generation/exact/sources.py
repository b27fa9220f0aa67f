"""Small models for `trialogue distribution`: tables of probabilities, structured distributions and language models."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from annotated_types import MinLen
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from trialogue.data import Table
from trialogue.data.registered import DISTRIBUTIONS
from trialogue.errors import InputError
from trialogue.generation.exact.settings import Source
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.models.tokenization import Tokenization
from trialogue.models.wrappers.spelled import SpelledTokenization
from trialogue.oracles import Autoregressive
from trialogue.validation import Count, NonNegative
from trialogue.verifiers import TableValues

Prefix = tuple[int, ...]
_SUM_TOLERANCE = 1e-6


_Probabilities = list[NonNegative] | dict[str, NonNegative]


class _TableFile(BaseModel):
    """Content of a file of conditional probabilities (see `Source.table`)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: Annotated[list[str], MinLen(1)]
    distribution: dict[str, _Probabilities]
    eos: str | None = None
    otherwise: _Probabilities | None = None
    max_length: Count | None = None


class LoadedSource(NamedTuple):
    """A small model and its prompt.

    Attributes:
        oracle: The model, which computes next-token distributions.
        tokenization: Conversion between texts and token ids.
        prompt: Token ids of the prompt.
    """

    oracle: Autoregressive
    tokenization: Tokenization
    prompt: Prefix


def load_source(source: Source) -> LoadedSource:
    """Load the model that the options specify, and encode the prompt.

    Args:
        source: Options. The model is a table in a file, a registered distribution, or a language model.

    Raises:
        InputError: If a file cannot be read, probabilities do not sum to 1, or the prompt cannot be encoded.
    """
    oracle: Autoregressive
    if source.model is not None:
        oracle = load_pretrained(source.model)
        text = oracle.tokenization
        encoded = (
            text.chat(source.prompt, system=source.system) if source.chat else text.encode(source.prompt)
        )
        return LoadedSource(oracle, text, tuple(encoded))
    if source.table is not None:
        oracle, spelled = read_table(source.table)
    else:
        oracle, spelled = build_distribution(str(source.distribution))
    oracle.tokenization = spelled
    try:
        prompt = spelled.encode(source.prompt)
    except InputError as error:
        raise InputError("prompt", source.prompt, error.hint) from None
    return LoadedSource(oracle, spelled, tuple(prompt))


def read_table(file: str) -> tuple[Table, SpelledTokenization]:
    """Read a model from a JSON file of conditional probabilities. `Source.table` describes the format.

    Args:
        file: Path of the file.

    Returns:
        The model, and the tokenization that maps the token texts in the file to token ids.

    Raises:
        InputError: If probabilities are negative or do not sum to 1 within 1e-6. The message contains the
            prefix.
    """
    content: _TableFile = _read_json("table", file, TypeAdapter(_TableFile))
    spelled = _spelled_tokenization("table", file, content.tokens, content.eos)
    distribution = {
        parse_prefix("table", file, key, spelled): _probabilities(file, f"after {key!r}", row, spelled)
        for key, row in content.distribution.items()
    }
    otherwise = content.otherwise
    if otherwise is not None:
        otherwise = _probabilities(file, '"otherwise":', otherwise, spelled)

    def next_probabilities(prefix: Prefix) -> Sequence[float]:
        row = distribution.get(prefix, otherwise)
        if row is None:
            text = " ".join(spelled.spellings[token] for token in prefix)
            hint = f'add probabilities after {text!r}, which can occur, or "otherwise"'
            raise InputError("table", file, hint)
        return row

    oracle = Table(next_probabilities, len(spelled.spellings), eos=spelled.eos, max_length=content.max_length)
    return oracle, spelled


def read_values(file: str, spelled: Tokenization) -> TableValues:
    """Read a value function from a JSON file.

    The file has an object with the value of each prefix, for example {"": 1, "a b": 0.2}. A prefix is written
    as token texts separated by spaces.

    Args:
        file: Path of the file.
        spelled: Tokenization of the model, which must be a `SpelledTokenization`.

    Returns:
        Verifier with the values of the file.

    Raises:
        InputError: If the file cannot be read, a value is negative, or a token is unknown.
    """
    if not isinstance(spelled, SpelledTokenization):
        raise InputError(
            "values",
            file,
            "use --table or --distribution: a file of values does not apply to --model",
        )
    content = _read_json("values", file, TypeAdapter(dict[str, NonNegative]))
    return TableValues({parse_prefix("values", file, key, spelled): value for key, value in content.items()})


def _read_json(field: str, file: str, adapter: TypeAdapter[Any]) -> Any:
    """Read and validate a JSON file."""
    try:
        return adapter.validate_python(json.loads(Path(file).read_text(encoding="utf-8")), strict=True)
    except OSError as error:
        raise InputError(field, file, f"it cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        # The location also contains the alternatives of a union.
        steps = [step for step in fault["loc"] if not str(step).startswith(("list[", "dict["))]
        place = "".join(f"[{step!r}]" for step in steps)
        hint = fault["msg"].removeprefix("Input ")
        raise InputError(field, file, f"{place}={fault['input']!r}: {hint}") from None
    except ValueError as error:
        raise InputError(field, file, f"it is not JSON: {error}") from None


def parse_prefix(field: str, file: str, key: str, spelled: SpelledTokenization) -> Prefix:
    """Convert a prefix from token texts to token ids.

    Args:
        field: Option that names the file, for error messages.
        file: File that contains the prefix, for error messages.
        key: Token texts separated by spaces, for example "a b".
        spelled: Tokenization.

    Raises:
        InputError: If a token is unknown.
    """
    prefix = []
    for text in key.split():
        if text not in spelled.spellings:
            hint = f"use the tokens {', '.join(spelled.spellings)}, separated by spaces: {key!r} contains {text!r}"
            raise InputError(field, file, hint)
        prefix.append(spelled.spellings.index(text))
    return tuple(prefix)


def _spelled_tokenization(
    field: str, file: str, tokens: Sequence[str], eos: str | None = None
) -> SpelledTokenization:
    spaced = next((token for token in tokens if token.split() != [token]), None)
    if spaced is not None:
        raise InputError(field, file, f"use tokens without spaces, which separate tokens: {spaced!r} has one")
    if eos is not None and eos not in tokens:
        raise InputError(field, file, f'use one of the tokens as "eos": {eos!r} is not one')
    try:
        return SpelledTokenization(tokens, None if eos is None else tokens.index(eos))
    except InputError as error:
        raise InputError(field, file, f"{error.field}={error.value!r}: {error.hint}") from None


def _probabilities(file: str, where: str, row: _Probabilities, spelled: SpelledTokenization) -> list[float]:
    """Return the probabilities of one prefix, given as a list or by token."""
    names = spelled.spellings
    if isinstance(row, dict):
        unknown = next((name for name in row if name not in names), None)
        if unknown is not None:
            hint = f"{where} use only the tokens {', '.join(names)}: {unknown!r} is not one"
            raise InputError("table", file, hint)
        row = [row.get(name, 0.0) for name in names]
    if len(row) != len(names):
        raise InputError("table", file, f"{where} use {len(names)} probabilities, one per token")
    total = math.fsum(row)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InputError("table", file, f"{where} the probabilities sum to {total:.6g}: make them sum to 1")
    return row


def build_distribution(spec: str) -> tuple[Autoregressive, SpelledTokenization]:
    """Build a registered distribution with exact next-token probabilities.

    Args:
        spec: Text NAME or NAME:JSON, where JSON has the arguments of the distribution.

    Returns:
        The distribution, and the tokenization of its tokens.

    Raises:
        InputError: If the name or the arguments are invalid, or the distribution has no next-token
            probabilities.
    """
    built = DISTRIBUTIONS.build(spec)
    if not isinstance(built, tuple):
        hint = "use `trialogue simulate`: it has no next-token distribution"
        raise InputError("distribution", spec, hint)
    oracle, tokens = built
    return oracle, _spelled_tokenization("distribution", spec, tokens)
