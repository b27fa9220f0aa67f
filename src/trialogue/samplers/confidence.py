"""Confidence of a model in the fields of a JSON text."""

import math
from collections.abc import Generator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Autoregressive, Decoding, Verifier, as_oracle
from trialogue.randomness import derive_seed
from trialogue.samplers.prefix.batch import Stop
from trialogue.samplers.prefix.engine import OpenRun, Terms
from trialogue.samplers.prefix.masked_decoding import MaskedDecoding
from trialogue.samplers.prefix.output.sample import Sample
from trialogue.samplers.prefix.prompts import (
    make_stop_condition,
    prompt_tensors,
    replace_empty_prompts,
    require_known_tokens,
)
from trialogue.samplers.spellings import SpellingSum, explore_spellings
from trialogue.samplers.truncation import Truncated
from trialogue.validation import Count, Natural, validated
from trialogue.verifiers.languages.language_verifier import Invalid, LanguageVerifier
from trialogue.verifiers.languages.token_spellings import token_spellings
from trialogue.verifiers.languages.vocabularies import make_matcher
from trialogue.verifiers.schemas.fields import FieldGrammar, JsonField, find_fields, split_value

_MOST_VALUES = 256
_TOLERANCE = 1e-4
_TOLERANCE_OF_ESTIMATES = 0.05
_ADDITIONAL_TOKENS = 16

Value = TypeVar("Value")
Parts = Generator[None, None, Value]
"""Generator that yields after each forward pass and returns the result."""


class FieldConfidence(NamedTuple):
    """Probability of a field of a JSON text.

    Attributes:
        probability: Probability of the value, given the text before it and that the value is allowed.
        standard_error: Standard error of the probability, 0 if all allowed values were enumerated.
        redraws: Number of redraws of the field, 0 if all allowed values were enumerated.
        alternatives: Probability of every allowed value, by its JSON text, in decreasing order. None if there are more
            than 256 of them.
    """

    probability: float
    standard_error: float
    redraws: int
    alternatives: dict[str, float] | None


@validated
def confidence(
    oracle: Autoregressive,
    prompt: str | Sequence[int],
    text: str | Sequence[int],
    verifier: Verifier,
    *,
    redraws: Count = 16,
    seed: Natural = 0,
) -> dict[str, FieldConfidence]:
    r"""Compute how sure a model is of each field of a JSON text.

    A field is a string, a number, true, false or null, in an object or list or alone. Its confidence is the probability
    that the model continues the text before the field with this value and the delimiter after it, divided by the same
    probability of all values that the grammar allows. The probability of the first token is another number, because
    a value can begin with several tokens, and several values with the same token.

    The text before a field consists of the given tokens. If a token contains the end of this text and the beginning of
    the value, it is replaced by its bytes. The probability of a value is the sum over all its tokenizations, except for
    tokenizations that together have an estimated 0.01 % of the probability of all values or less.

    If the grammar allows at most 256 values of a field, all are enumerated. Otherwise, for example for free strings,
    the field is drawn again `redraws` times by masked decoding. The mean weight of redraws with other values estimates
    the probability of all other values. A redraw that does not end within twice the length of the field and 16 tokens
    counts as another value. In this case, tokenizations with up to 5 % of
    the probability of the value are neglected.

    Args:
        oracle: The model. Its temperature and truncation are ignored.
        prompt: Prompt, as text or token ids.
        text: JSON text that the model generated, as text or token ids. An end-of-sequence token at the end is ignored.
        verifier: Verifier with a JSON grammar that accepts the text, such as `GrammarVerifier.json_schema`. Keywords
            that the grammar does not enforce do not affect which values are allowed.
        redraws: Number of redraws of each field that cannot be enumerated.
        seed: Seed of the redraws.

    Returns:
        The confidence of each field, by its JSON Pointer (RFC 6901).

    Raises:
        InputError: If the model has no tokenization, the verifier has no grammar, or the text is not a JSON text of the
            grammar. Also if the text is a single value and the model has no end-of-sequence token.

    Example:
        >>> verifier = GrammarVerifier.json_schema({"enum": ["yes", "no"]}, oracle.tokenization)
        >>> confidence(oracle, "Is 7 a prime number? ", '"yes"', verifier)[""].alternatives
        {'"yes"': 0.8, '"no"': 0.2}
    """
    parts = confidence_parts(oracle, prompt, text, verifier, redraws=redraws, seed=seed)
    with torch.inference_mode():
        return run_parts(parts)


def run_parts(parts: Parts[Value]) -> Value:
    """Run a computation to its end.

    Args:
        parts: Generator that yields after each forward pass.

    Returns:
        The result of the generator.
    """
    while True:
        try:
            next(parts)
        except StopIteration as stopped:
            result: Value = stopped.value
            return result


def confidence_parts(
    oracle: Autoregressive,
    prompt: str | Sequence[int],
    text: str | Sequence[int],
    verifier: Verifier,
    *,
    redraws: int = 16,
    seed: int = 0,
) -> Parts[dict[str, FieldConfidence]]:
    """Compute the result of `confidence` in parts. Call this in `torch.inference_mode()`.

    The arguments are those of `confidence`.

    Yields:
        None after each forward pass.

    Returns:
        The confidence of each field, by its JSON Pointer.

    Raises:
        InputError: If an argument is invalid.
    """
    oracle = as_oracle(oracle)
    if isinstance(oracle, Truncated):
        oracle = oracle.base
    tokenization = oracle.tokenization
    if not isinstance(tokenization, Tokenization):
        raise InputError("oracle", type(oracle).__name__, "use a model with a tokenization")
    if not isinstance(verifier, LanguageVerifier):
        hint = "use a verifier with a JSON grammar, such as GrammarVerifier.json_schema"
        raise InputError("verifier", type(verifier).__name__, hint)
    before, completion = _encode(oracle, tokenization, prompt, text)
    written = tokenization.bytes(completion)
    shown = written.decode(errors="replace")
    try:
        fields = [
            _Field(tokenization, verifier.grammar, before, completion, field)
            for field in find_fields(written)
        ]
    except Invalid as error:
        raise InputError("text", shown, str(error)) from None
    if any(field.ends for field in fields) and oracle.eos is None:
        hint = "put the value into an object: the end of a single value needs an end-of-sequence token"
        raise InputError("text", shown, hint)
    if fields:
        sums = [field.spellings for field in fields]
        yield from explore_spellings(oracle, tokenization, [*before, *completion], sums)
    found = {}
    for field in fields:
        found[field.pointer] = yield from field.confidence(oracle, redraws, seed)
    return found


def _encode(
    oracle: Autoregressive,
    tokenization: Tokenization,
    prompt: str | Sequence[int],
    text: str | Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return the token ids of the prompt and of the text, without tokens that have no bytes at its end."""
    given = tokenization.encode(prompt) if isinstance(prompt, str) else list(prompt)
    tokens, lengths = replace_empty_prompts(oracle, *prompt_tensors([given]))
    joined = prompt if isinstance(prompt, str) else ""
    completion = tokenization.encode_completion(text, joined) if isinstance(text, str) else list(text)
    require_known_tokens(tokens, lengths, oracle.vocab_size)
    require_known_tokens(*prompt_tensors([completion]), oracle.vocab_size, "text")
    table = tokenization.token_bytes
    while completion and not table[completion[-1]]:
        completion.pop()
    before: list[int] = tokens[0, : int(lengths[0])].tolist()
    if oracle.max_length is not None and len(before) + len(completion) > oracle.max_length:
        hint = f"use a prompt and a text of at most {oracle.max_length} tokens together, the context of the model"
        raise InputError("text", len(before) + len(completion), hint)
    return before, completion


class _Field:
    """Field of a JSON text, with the values that are allowed in it.

    Attributes:
        pointer: JSON Pointer of the field.
        ends: Whether the field is the whole text, so that only the end of the text follows.
        values: JSON texts of all allowed values, or None if there are too many.
        spellings: Probabilities of the allowed values, or of the value of the field if there are too many.
    """

    def __init__(
        self,
        tokenization: Tokenization,
        grammar: str,
        prompt: Sequence[int],
        completion: Sequence[int],
        field: JsonField,
    ) -> None:
        table = tokenization.token_bytes
        stops = [0, *accumulate(len(table[token]) for token in completion)]
        written = tokenization.bytes(completion)
        kept = max(place for place, stop in enumerate(stops) if stop <= field.start)
        self._tokens = [*prompt, *completion[:kept]]
        self._num_tokens = next(place for place, stop in enumerate(stops) if stop >= field.stop) - kept
        self._value = written[field.start : field.stop]
        self.pointer, self.ends = field.pointer, field.stop == field.end
        delimiter = written[field.stop : field.end]
        allowed = FieldGrammar(grammar, written[: field.start], delimiter)
        if not allowed.allows(self._value):
            raise Invalid(f"the grammar does not allow the value of the field {field.pointer!r}")
        self.values = allowed.values(_MOST_VALUES)
        opening = written[stops[kept] : field.start]
        self.spellings = SpellingSum(
            len(self._tokens),
            [opening + value + delimiter for value in self.values or [self._value]],
            self.ends,
            _TOLERANCE_OF_ESTIMATES if self.values is None else _TOLERANCE,
            tokenization,
        )
        self._verifier = _FieldVerifier(tokenization, grammar, completion[:kept], opening, allowed, delimiter)

    def confidence(self, oracle: Autoregressive, redraws: int, seed: int) -> Parts[FieldConfidence]:
        """Compute the confidence of the model, after the spellings have been explored."""
        if self.values is None:
            return (yield from self._estimated(oracle, redraws, seed))
        total = math.fsum(self.spellings.masses)
        shares = [
            (mass / total if total else math.nan, value.decode())
            for mass, value in zip(self.spellings.masses, self.values, strict=True)
        ]
        alternatives = {value: share for share, value in sorted(shares, key=lambda pair: -pair[0])}
        return FieldConfidence(alternatives[self._value.decode()], 0.0, 0, alternatives)

    def _estimated(self, oracle: Autoregressive, redraws: int, seed: int) -> Parts[FieldConfidence]:
        """Compute the confidence with the probability of other values estimated from redraws."""
        longest = 2 * self._num_tokens + _ADDITIONAL_TOKENS
        run = OpenRun(
            oracle,
            MaskedDecoding(),
            batch_size=min(redraws, oracle.batch_size),
            capacity=len(self._tokens) + longest,
        )
        terms = _Redraws(self._verifier, longest)
        seed = derive_seed(seed, "confidence", self.pointer)
        run.submit(self._tokens, terms, num_samples=redraws, seed=seed)
        samples = list[Sample]()
        while run.busy:
            for finished in run.step():
                samples += finished.samples
            yield
        samples.sort(key=lambda sample: sample.index)
        weights = torch.tensor([sample.log_weight for sample in samples], dtype=torch.float64).exp()
        is_other = torch.tensor(
            [not self._verifier.has_value(one.tokens, self._value, oracle.eos) for one in samples]
        )
        own, others = self.spellings.masses[0], weights * is_other
        total = own + float(others.mean())
        if not total:
            return FieldConfidence(math.nan, math.nan, redraws, None)
        # One more redraw with another value, so that the error is positive if no redraw has another value.
        one_more = torch.cat((others, torch.tensor([max(own, float(weights.mean()))])))
        error = own / total**2 * float(one_more.std()) / math.sqrt(redraws)
        return FieldConfidence(own / total, error, redraws, None)


class _FieldVerifier(Verifier):
    """Verifier whose mask allows continuations of the text before a field with an allowed value and the delimiter.

    Masked decoding draws only sequences that it accepts.

    Args:
        tokenization: Tokenization of the model.
        grammar: Grammar of complete texts.
        completion: Tokens of the text before the field.
        opening: Bytes of this text that `completion` does not contain.
        allowed: Values that are allowed in the field.
        delimiter: Delimiter after the field. Empty if the text ends with the field.
    """

    scope = "completion"
    most = 1.0
    has_mask = True

    def __init__(
        self,
        tokenization: Tokenization,
        grammar: str,
        completion: Sequence[int],
        opening: bytes,
        allowed: FieldGrammar,
        delimiter: bytes,
    ) -> None:
        self._tokenization, self._opening, self._allowed = tokenization, opening, allowed
        self._delimiter, self._table = delimiter, tokenization.token_bytes
        self._spellings = token_spellings(tokenization)
        self._start = make_matcher(tokenization.matcher_tokenizer, grammar)
        if self._start.try_consume_tokens(list(completion)) < len(completion):
            raise Invalid("the grammar does not allow its tokens")
        self._ends = list(tokenization.matcher_tokenizer.eos_tokens)
        self._delimiting = [
            token for token, spelling in enumerate(self._table) if any(byte in spelling for byte in b",]}")
        ]

    def is_closed(self, completion: tuple[int, ...]) -> bool:
        """Return whether a completion contains the value and a delimiter."""
        return self._split(self._tokenization.bytes(completion)) is not None

    def has_value(self, completion: Sequence[int], value: bytes, eos: int | None) -> bool:
        """Return whether a completion contains this value, followed by the delimiter or the end of the text."""
        text = self._tokenization.bytes(completion)
        if not self._delimiter:
            return text == self._opening + value and completion[-1] == eos
        return text.startswith(self._opening + value + self._delimiter)

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return 1 for each row (n,), because masked decoding draws only sequences that the mask allows."""
        del decoding
        return torch.ones(len(rows), dtype=torch.bool)

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the tokens (n, vocab) bool after which a sequence is the beginning of an allowed continuation."""
        verdicts = np.zeros((len(rows), decoding.vocab_size), dtype=np.bool_)
        for verdict, row in zip(verdicts, rows.tolist(), strict=True):
            tokens = decoding.tokens[row, int(decoding.start[row]) : int(decoding.lengths[row])].tolist()
            text, matcher = self._tokenization.bytes(tokens), self._start.deep_copy()
            matcher.try_consume_tokens(tokens)
            is_accepting = bool(matcher.is_accepting())
            mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
            verdict[:] = np.unpackbits(mask, count=decoding.vocab_size, bitorder="little")
            verdict[[token for token in self._ends if token < len(verdict)]] = False
            if decoding.eos is not None and not self._delimiter:
                verdict[decoding.eos] = is_accepting
            for token in self._delimiting:
                parts = self._split(text + self._table[token])
                if parts is not None:
                    verdict[token] = parts[1] == self._delimiter and self._allowed.allows(parts[0])
            rest = self._opening[len(text) :]
            if rest:
                is_possible = np.zeros_like(verdict)
                is_possible[[token for _, token in self._spellings.beginnings_of(rest)]] = True
                is_possible[self._spellings.continuations_of(rest)] = True
                verdict &= is_possible
        return torch.from_numpy(verdicts)

    def _split(self, text: bytes) -> tuple[bytes, bytes] | None:
        """Return the value and the delimiter if both are complete, else None."""
        return split_value(text[len(self._opening) :]) if text.startswith(self._opening) else None


class _Redraws(Terms):
    """Settings of the redraws of a field, which end with the delimiter after the value."""

    def stop_condition(self, oracle: Autoregressive) -> Stop | None:
        """Return a function that finds the delimiter in a completion."""
        assert isinstance(self.verifier, _FieldVerifier)
        return make_stop_condition(oracle, [self.verifier.is_closed])
