"""Oracles as the command line names them: a table of conditionals in JSON, a structured distribution, or a
language model.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.data import Table
from trialogue.data.registered import DISTRIBUTIONS
from trialogue.errors import InputError, non_negative_number
from trialogue.generation.exact.settings import Source
from trialogue.models.pretrained import load_pretrained
from trialogue.models.spelled import SpelledTokenization
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive
from trialogue.verifiers import TableValues

Prefix = tuple[int, ...]
_SUM_TOLERANCE = 1e-6


class Asked(NamedTuple):
    """An oracle, what spells its tokens, and the prompt in tokens."""

    oracle: Autoregressive
    tokenization: Tokenization
    prompt: Prefix


def asked(source: Source) -> Asked:
    """The oracle of `source` and its prompt; raises `InputError` for what cannot be read or does not add up."""
    oracle: Autoregressive
    if source.model is not None:
        oracle = load_pretrained(source.model)
        tokenization = oracle.tokenization
        prompt = tokenization.encode(source.prompt)
        if not prompt:
            raise InputError("prompt", source.prompt, "the model has no token to begin with: give a text")
        return Asked(oracle, tokenization, tuple(prompt))
    if source.table is not None:
        oracle, spelled = read_table(source.table)
    else:
        oracle, spelled = distribution_of(str(source.distribution))
    oracle.tokenization = spelled
    try:
        prompt = spelled.encode(source.prompt)
    except InputError as error:
        raise InputError("prompt", source.prompt, error.hint) from None
    return Asked(oracle, spelled, tuple(prompt))


def read_table(file: str) -> tuple[Table, SpelledTokenization]:
    """The oracle that a JSON file describes (see `Source.table`), with the texts of its tokens.

    Raises `InputError` that names the prefix where probabilities are negative, or do not sum to one within 1e-6.
    """
    content = _read_object("table", file)
    _require_fields("table", file, content, {"tokens", "distribution"}, {"eos", "otherwise", "max_length"})
    spelled = _spelled("table", file, content["tokens"], content.get("eos"))
    if not isinstance(content["distribution"], Mapping):
        raise InputError(
            "table", file, '"distribution" is to hold the probabilities of each prefix: {"": [...], ...}'
        )
    distribution = {
        prefix_of("table", file, key, spelled): _row(file, f"after {key!r}", row, spelled)
        for key, row in content["distribution"].items()
    }
    otherwise = _row(file, '"otherwise":', content["otherwise"], spelled) if "otherwise" in content else None

    def answer(prefix: Prefix) -> Sequence[float]:
        row = distribution.get(prefix, otherwise)
        if row is None:
            text = " ".join(spelled.spellings[token] for token in prefix)
            hint = f'after {text!r}, which can occur, it has no probabilities: list them, or give "otherwise"'
            raise InputError("table", file, hint)
        return row

    try:
        oracle = Table(answer, len(spelled.spellings), eos=spelled.eos, max_length=content.get("max_length"))
    except InputError as error:
        raise InputError("table", file, f"{error.field}: {error.hint}") from None
    return oracle, spelled


def read_values(file: str, spelled: Tokenization) -> TableValues:
    """Values of prefixes from a JSON file: {"": 1, "a b": 0.2}."""
    if not isinstance(spelled, SpelledTokenization):
        raise InputError("values", file, "a file of values is for --table and --distribution")
    content = _read_object("values", file)
    try:
        checked = {key: non_negative_number(f"the value of {key!r}", value) for key, value in content.items()}
        return TableValues({prefix_of("values", file, key, spelled): value for key, value in checked.items()})
    except InputError as error:
        raise InputError("values", file, f"{error.field}={error.value!r}: {error.hint}") from None


def prefix_of(field: str, file: str, key: str, spelled: SpelledTokenization) -> Prefix:
    """The tokens of a prefix that a file writes as their texts, separated by spaces."""
    prefix = []
    for text in key.split():
        if text not in spelled.spellings:
            hint = f"in {key!r} {text!r} is no token: they are {', '.join(spelled.spellings)}, separated by spaces"
            raise InputError(field, file, hint)
        prefix.append(spelled.spellings.index(text))
    return tuple(prefix)


def _spelled(field: str, file: str, tokens: Any, eos: Any = None) -> SpelledTokenization:
    if not isinstance(tokens, list | tuple) or not tokens or not all(isinstance(t, str) for t in tokens):
        raise InputError(field, file, '"tokens" is to be a list of texts, one for each token')
    spaced = next((token for token in tokens if token.split() != [token]), None)
    if spaced is not None:
        raise InputError(field, file, f"the token {spaced!r} has a space in it, which separates tokens here")
    if eos is not None and eos not in tokens:
        raise InputError(field, file, f'"eos" {eos!r} is none of the tokens')
    try:
        return SpelledTokenization(tokens, None if eos is None else tokens.index(eos))
    except InputError as error:
        raise InputError(field, file, f"{error.field}={error.value!r}: {error.hint}") from None


def _row(file: str, where: str, row: Any, spelled: SpelledTokenization) -> list[float]:
    """The probabilities of one prefix, which a file gives as a list or by token."""
    names = spelled.spellings
    if isinstance(row, Mapping):
        strange = next((name for name in row if name not in names), None)
        if strange is not None:
            hint = f"{where} {strange!r} is no token: they are {', '.join(names)}"
            raise InputError("table", file, hint)
        row = [row.get(name, 0.0) for name in names]
    if not isinstance(row, list) or len(row) != len(names):
        raise InputError("table", file, f"{where} give {len(names)} probabilities, one for each token")
    for value in row:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise InputError("table", file, f"{where} {value!r} is no probability")
    total = math.fsum(row)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InputError("table", file, f"{where} the probabilities sum to {total:.6g}: make them sum to 1")
    return row


def _read_object(field: str, file: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(field, file, f"it cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(field, file, f"it is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(field, file, "it is to hold a JSON object: {...}")
    return content


def _require_fields(
    field: str, value: str, content: Mapping[str, Any], needed: set[str], others: set[str]
) -> None:
    missing, strange = sorted(needed - content.keys()), sorted(content.keys() - needed - others)
    if missing:
        raise InputError(field, value, f'it has no "{missing[0]}"')
    if strange:
        raise InputError(
            field, value, f'it has no use for "{strange[0]}": {", ".join(sorted(needed | others))}'
        )


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
