"""Oracles as the command line names them: a table of conditionals in JSON, a structured distribution, or a
language model.
"""

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


_Row = list[NonNegative] | dict[str, NonNegative]


class _TableFile(BaseModel):
    """The content of a file of conditionals (see `Source.table`)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: Annotated[list[str], MinLen(1)]
    distribution: dict[str, _Row]
    eos: str | None = None
    otherwise: _Row | None = None
    max_length: Count | None = None


class LoadedSource(NamedTuple):
    """An oracle, the tokenization of its tokens, and the prompt in tokens."""

    oracle: Autoregressive
    tokenization: Tokenization
    prompt: Prefix


def load_source(source: Source) -> LoadedSource:
    """Return the oracle of `source` and its prompt.

    Raises `InputError` for files that cannot be read, and for probabilities that do not add up.
    """
    oracle: Autoregressive
    if source.model is not None:
        oracle = load_pretrained(source.model)
        return LoadedSource(oracle, oracle.tokenization, tuple(oracle.tokenization.encode(source.prompt)))
    if source.table is not None:
        oracle, spelled = read_table(source.table)
    else:
        oracle, spelled = distribution_of(str(source.distribution))
    oracle.tokenization = spelled
    try:
        prompt = spelled.encode(source.prompt)
    except InputError as error:
        raise InputError("prompt", source.prompt, error.hint) from None
    return LoadedSource(oracle, spelled, tuple(prompt))


def read_table(file: str) -> tuple[Table, SpelledTokenization]:
    """Return the oracle that a JSON file describes (see `Source.table`), and the tokenization of its tokens.

    Raises `InputError` that names the prefix if probabilities are negative, or do not sum to one within 1e-6.
    """
    content: _TableFile = _read("table", file, TypeAdapter(_TableFile))
    spelled = _spelled("table", file, content.tokens, content.eos)
    distribution = {
        prefix_of("table", file, key, spelled): _row(file, f"after {key!r}", row, spelled)
        for key, row in content.distribution.items()
    }
    otherwise = content.otherwise
    if otherwise is not None:
        otherwise = _row(file, '"otherwise":', otherwise, spelled)

    def answer(prefix: Prefix) -> Sequence[float]:
        row = distribution.get(prefix, otherwise)
        if row is None:
            text = " ".join(spelled.spellings[token] for token in prefix)
            hint = f'after {text!r}, which can occur, it has no probabilities: list them, or give "otherwise"'
            raise InputError("table", file, hint)
        return row

    oracle = Table(answer, len(spelled.spellings), eos=spelled.eos, max_length=content.max_length)
    return oracle, spelled


def read_values(file: str, spelled: Tokenization) -> TableValues:
    """Return the values of prefixes in a JSON file: {"": 1, "a b": 0.2}."""
    if not isinstance(spelled, SpelledTokenization):
        raise InputError("values", file, "a file of values is for --table and --distribution")
    content = _read("values", file, TypeAdapter(dict[str, NonNegative]))
    return TableValues({prefix_of("values", file, key, spelled): value for key, value in content.items()})


def _read(field: str, file: str, adapter: TypeAdapter[Any]) -> Any:
    """Return the content of a JSON file, validated."""
    try:
        return adapter.validate_python(json.loads(Path(file).read_text(encoding="utf-8")), strict=True)
    except OSError as error:
        raise InputError(field, file, f"it cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        # The alternatives of a union are steps of the place, too.
        steps = [step for step in fault["loc"] if not str(step).startswith(("list[", "dict["))]
        place = "".join(f"[{step!r}]" for step in steps)
        hint = fault["msg"].removeprefix("Input ")
        raise InputError(field, file, f"{place}={fault['input']!r}: {hint}") from None
    except ValueError as error:
        raise InputError(field, file, f"it is no JSON: {error}") from None


def prefix_of(field: str, file: str, key: str, spelled: SpelledTokenization) -> Prefix:
    """Return the tokens of a prefix that a file writes as their texts, separated by spaces."""
    prefix = []
    for text in key.split():
        if text not in spelled.spellings:
            hint = f"in {key!r} {text!r} is no token: they are {', '.join(spelled.spellings)}, separated by spaces"
            raise InputError(field, file, hint)
        prefix.append(spelled.spellings.index(text))
    return tuple(prefix)


def _spelled(field: str, file: str, tokens: Sequence[str], eos: str | None = None) -> SpelledTokenization:
    spaced = next((token for token in tokens if token.split() != [token]), None)
    if spaced is not None:
        raise InputError(field, file, f"the token {spaced!r} has a space in it, which separates tokens here")
    if eos is not None and eos not in tokens:
        raise InputError(field, file, f'"eos" {eos!r} is none of the tokens')
    try:
        return SpelledTokenization(tokens, None if eos is None else tokens.index(eos))
    except InputError as error:
        raise InputError(field, file, f"{error.field}={error.value!r}: {error.hint}") from None


def _row(file: str, where: str, row: _Row, spelled: SpelledTokenization) -> list[float]:
    """Return the probabilities of one prefix, which a file gives as a list or by token."""
    names = spelled.spellings
    if isinstance(row, dict):
        strange = next((name for name in row if name not in names), None)
        if strange is not None:
            hint = f"{where} {strange!r} is no token: they are {', '.join(names)}"
            raise InputError("table", file, hint)
        row = [row.get(name, 0.0) for name in names]
    if len(row) != len(names):
        raise InputError("table", file, f"{where} give {len(names)} probabilities, one for each token")
    total = math.fsum(row)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InputError("table", file, f"{where} the probabilities sum to {total:.6g}: make them sum to 1")
    return row


def distribution_of(spec: str) -> tuple[Autoregressive, SpelledTokenization]:
    """The structured distribution that `spec`, NAME or NAME:JSON, names; raises `InputError` for arguments that it
    refuses.
    """
    built = DISTRIBUTIONS.build(spec)
    if not isinstance(built, tuple):
        hint = "it has no distribution of the next token: use `trialogue simulate`"
        raise InputError("distribution", spec, hint)
    oracle, tokens = built
    return oracle, _spelled("distribution", spec, tokens)
