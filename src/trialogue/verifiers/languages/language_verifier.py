"""Verifiers of formal languages, which combine a grammar for prefixes with an optional parser for complete texts.

llguidance parses bytes, so a prefix may end inside a character. By default, if the next bytes are determined by the
grammar, llguidance allows only their canonical tokens. This would restrict the distribution more than the language
does. All grammars are therefore compiled with `no_forcing`, which allows a token whenever its bytes are allowed.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from llguidance import LLMatcher
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError, NotValidError
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import Count, validated
from trialogue.verifiers.languages.automaton import NEVER, ByteAutomaton, TokenAutomaton
from trialogue.verifiers.languages.closing_texts import ClosingTexts, RegularClosings
from trialogue.verifiers.languages.closing_tokens import ClosingTokens
from trialogue.verifiers.languages.object_keys import KeyState, repeated_keys
from trialogue.verifiers.languages.stop_strings import StopStrings
from trialogue.verifiers.languages.stopped_language import StoppedLanguage
from trialogue.verifiers.languages.vocabularies import (
    NO_FORCING,
    has_exceeded_limits,
    make_matcher,
    single_byte_tokens,
)

_MIN_MATCHERS = 64
_MAX_QUOTED_CHARACTERS = 60
_MAX_PARSED_TEXTS = 1024
_NEAR = 64

Bits = NDArray[np.uint8]
Tokens = NDArray[np.int64]


class Invalid(ValueError):
    """Error for a text that does not belong to a formal language. The message states the reason in one line."""


class InvalidText(Invalid, NotValidError):
    """Error for a text that matches the grammar of a language completely, but fails the validation of its content.

    For example, a JSON text can match the grammar of a JSON Schema and violate a keyword that the grammar cannot
    express. The error is also raised if the validation exceeds its time limit. The message states the reason in one
    line.
    """


class Language(NamedTuple):
    """Formal language: a grammar that all texts match, and optionally a parser that must accept complete texts."""

    grammar: str
    """Grammar in llguidance's dialect of Lark."""
    source: str
    """Text that identifies the language in error messages."""
    parse: Callable[[str], Any] | None = None
    """Function that converts a text to a value and raises `Invalid` for texts that are not in the language."""
    notes: tuple[str, ...] = ()
    """Warnings for the user."""
    names: frozenset[str] | None = None
    """Required keys of the objects of a JSON language, None for another language."""
    pattern: str | None = None
    """Regular expression, if the grammar is `start: ` followed by it."""

    def acceptance(self) -> Callable[[bytes], bool]:
        """Return a function that tests whether the parser of the language accepts a text.

        Returns:
            Function from a text, encoded as bytes, to a bool. It returns True for every text if the language has no
            parser. It caches its results. The text must match the grammar, which is not tested.
        """

        @lru_cache(maxsize=_MAX_PARSED_TEXTS)
        def accepts(text: bytes) -> bool:
            if self.parse is None:
                return True
            try:
                self.parse(text.decode())
            except Invalid:
                return False
            return True

        return accepts


@dataclass(slots=True)
class _Prefix:
    """Cached token masks for a completion that can be continued to a text of the language.

    Masks are little-endian bits over the vocabulary of the tokenizer.
    """

    accepted: bool
    """Whether the completion is in the language."""
    keys: KeyState
    """Keys of the objects that the completion has begun, if the language is that of a JSON Schema."""
    viable: Bits | None = None
    """Tokens after which the completion is still viable."""
    members: Bits | None = None
    """Tokens after which the completion is in the language."""


@validated
class LanguageVerifier(Verifier):
    """Verifier that accepts the texts of a formal language, and all prefixes of such texts.

    Only the completion is evaluated, not the prompt. The end-of-sequence token does not belong to the text. The parser
    of the language is applied only to complete texts, so the value of a prefix depends only on the grammar.

    In two cases, a prefix may be classified wrongly because of the grammar library llguidance. The library splits a
    text into lexemes of a Lark grammar greedily and without backtracking, as Lark does. It also treats a rule with
    infinite recursion as one that can be completed.

    The verifier is thread-safe.

    Args:
        language: Language to accept.
        tokenization: Tokenization of the language model.
        memory: Number of completions whose token masks are cached, at one bit per token of the vocabulary.
        field: Name of the option in error messages.

    Attributes:
        grammar: Grammar of the language in llguidance's dialect of Lark, with the option `no_forcing`.

    Raises:
        InputError: If the grammar does not compile or accepts nothing.
    """

    scope = "completion"
    most = 1.0
    has_mask = True

    def __init__(self, language: Language, tokenization: Tokenization, memory: Count, field: str) -> None:
        self.grammar, self._tokenization = language.grammar + NO_FORCING, tokenization
        self.parser, self.notes = language.parse, language.notes
        self._field, self._source, self._names = field, language.source, language.names
        self._memory, self._language = memory, language
        self._automata = dict[int | None, TokenAutomaton]()
        tokenizer = tokenization.matcher_tokenizer
        self._size, self._eos = tokenizer.vocab_size, tokenizer.eos_token
        self._ends = frozenset(tokenizer.eos_tokens)
        self._start = make_matcher(tokenizer, self.grammar)
        if self._start.is_error():
            raise self._error(self._start)
        self._matchers: OrderedDict[bytes, LLMatcher] = OrderedDict()  # The keys are the consumed tokens.
        self._prefixes: OrderedDict[bytes, _Prefix] = OrderedDict()
        self._rows, self._lock = 1, Lock()
        self._stopped: StoppedLanguage | None = None
        self._closing: ClosingTexts | RegularClosings | None = None
        self._accepts = language.acceptance()
        self._repeated = None if language.names is None else repeated_keys(tokenization)
        self._shortlist = ClosingTokens(
            language.grammar, NO_FORCING, tokenization, language.pattern is not None
        )
        start = self._prefix(b"")
        if start is None or not (start.accepted or self._viable_mask(b"", start).any()):
            raise InputError(field, self._source, "the tokenizer can produce no text that is accepted")

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy that evaluates the text before the first stop string.

        A token that completes a stop string is accepted if the text before the stop string is in the language. A prefix
        may end with the beginning of a stop string.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped._stopped = StoppedLanguage(
            self.grammar, StopStrings(stop), self._tokenization, self._error, self._accepts
        )
        return stopped

    def within_limit(self) -> Self:
        """Return a copy whose mask keeps only tokens after which the text can be completed before the length limit.

        The copy rejects a prefix near the limit if its completion has more tokens than are left. Samplers then target
        the model's distribution restricted to the texts of the language all of whose prefixes are accepted. For a
        regular expression or a list of texts, the completions have the fewest tokens, unless the automaton of the
        language is too large, so that these are all texts within the limit. Otherwise the completions are those of
        `ClosingTexts`, and these are at least the texts that end early enough. Tokens are restricted only if fewer than
        64 tokens are left in addition to those of the completion.

        If the shortest text that was found is longer than the limit, the mask does not change. Conditions that only the
        parser checks are not considered.

        Raises:
            InputError: If the language is that of a Lark grammar, for which completions are not available.
        """
        if self._field == "lark":
            hint = (
                "use a regular expression or a JSON Schema; a Lark grammar has no known shortest completion"
            )
            raise InputError("within_limit", self._source, hint)
        limited = copy(self)
        if self._language.pattern is not None:
            with suppress(InputError):
                limited._closing = RegularClosings(self._language.pattern, self._tokenization)
                return limited
        limited._closing = ClosingTexts(self.grammar, self._names, self._tokenization)
        return limited

    @property
    def min_tokens(self) -> int | None:
        """Number of tokens of the shortest text that `within_limit` has found. None if there is none."""
        cost = NEVER if self._closing is None else self._closing.cost(b"")
        return None if cost == NEVER else cost

    @property
    def is_regular(self) -> bool:
        """Whether the language is that of a regular expression or of a list of texts."""
        return self._language.pattern is not None and self._stopped is None

    def automaton(self, eos: int | None = None) -> TokenAutomaton:
        """Return a deterministic automaton that reads the tokens of a text.

        Args:
            eos: Token that ends a text (default: none).

        Raises:
            InputError: If the language is not that of a regular expression or of a list of texts, or the automaton is
                too large.
        """
        if self._language.pattern is None or not self.is_regular:
            hint = (
                "masks in any order need a regular expression or a list of choices. Reject texts instead (--quota N,"
                " or Checked in Python)"
            )
            raise InputError(self._field, self._source, hint)
        if eos not in self._automata:
            of_bytes = ByteAutomaton.from_pattern(self._language.pattern)
            self._automata[eos] = TokenAutomaton.compile(of_bytes, self._tokenization.token_bytes, eos)
        return self._automata[eos]

    def validates(self, completion: Sequence[int]) -> bool:
        """Return whether the parser accepts a complete text, even if it is not a text of the grammar.

        The parser of a JSON Schema accepts keys in any order, white space, and all spellings of numbers and strings.

        Args:
            completion: Token ids of the text. An end-of-sequence token may follow.
        """
        tokens = [*completion]
        if tokens and tokens[-1] in self._ends:
            tokens.pop()
        if (
            self.parser is None
            or self._stopped is not None
            or not self._tokenization.special.isdisjoint(tokens)
        ):
            return False
        try:
            return self._accepts(self._tokenization.bytes(tokens))
        except UnicodeDecodeError:
            return False

    def prepared(self) -> Self:
        """Build the internal tables now, so that the first evaluation is not slow.

        Returns:
            This verifier.
        """
        with self._lock:
            self._shortlist.prepare()
            if self._stopped is not None:
                self._stopped.prepare()
        return self

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return whether sequences are accepted.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Bool tensor (n,), one entry for each index in `rows`. For a complete sequence, True means that its
            completion is in the language. For a prefix, True means that it can be continued to such a text.
        """
        complete = decoding.complete[rows].tolist()
        completions, rooms = _completions(decoding, rows)
        with self._lock:
            self._rows = max(self._rows, len(complete))
            verdicts = []
            for tokens, ended, room in zip(completions, complete, rooms, strict=True):
                text = tokens[:-1] if ended and len(tokens) and tokens[-1] == decoding.eos else tokens
                verdict = None if self._stopped is None else self._stopped.verdict(text, ended)
                if verdict is None:
                    prefix = self._prefix(text.tobytes())
                    verdict = prefix is not None and (prefix.accepted or not ended)
                    if verdict and not ended and len(text):
                        fitting = self._fits(text[:-1], room + 1, decoding.vocab_size)
                        verdict = fitting if isinstance(fitting, bool) else bool(fitting[text[-1]])
                verdicts.append(verdict)
        return torch.tensor(verdicts, dtype=torch.bool)

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return whether the sequences that extend a row by one token are accepted.

        The end-of-sequence token is accepted if the text so far is in the language. A token that reaches the length
        limit is accepted only if the text with this token is in the language.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of rows of the batch that are not complete.

        Returns:
            Bool tensor (n, vocab). Entry (i, t) belongs to row `rows[i]` followed by token t.
        """
        completions, rooms = _completions(decoding, rows)
        with self._lock:
            self._rows = max(self._rows, len(rooms))
            masks = np.zeros((len(rooms), -(-decoding.vocab_size // 8)), dtype=np.uint8)
            prefixes = []
            for mask, tokens, room in zip(masks, completions, rooms, strict=True):
                key = tokens.tobytes()
                prefixes.append(prefix := self._prefix(key))
                if prefix is not None:
                    own = self._member_mask(key, prefix) if room <= 1 else self._viable_mask(key, prefix)
                    mask[: len(own)] = own[: len(mask)]
            bits = np.unpackbits(masks, axis=1, count=decoding.vocab_size, bitorder="little")
            verdicts = bits.view(np.bool_)
            for row, (tokens, prefix) in enumerate(zip(completions, prefixes, strict=True)):
                if prefix is not None:
                    if rooms[row] > 1 and self._closing is not None:
                        verdicts[row] &= self._fits(tokens, rooms[row], decoding.vocab_size)
                    if decoding.eos is not None:
                        verdicts[row, decoding.eos] = prefix.accepted
                if self._stopped is not None:
                    self._stopped.correct(verdicts[row], tokens, rooms[row] <= 1)
        return torch.from_numpy(verdicts)

    def _fits(self, tokens: Tokens, room: int, vocab_size: int) -> NDArray[np.bool_] | bool:
        """Return after which next tokens the text can be completed within `room` tokens, including the next token.

        True stands for all tokens.
        """
        if self._closing is None:
            return True
        key = tokens.tobytes()
        prefix = self._prefix(key)
        assert prefix is not None
        text = self._text(key)
        cost = self._closing.cost(text, prefix.keys)
        if not cost <= room < cost + _NEAR or self._closing.cost(b"") > room + len(tokens):
            return True
        viable = np.unpackbits(self._viable_mask(key, prefix), count=vocab_size, bitorder="little")
        return self._closing.costs(text, viable.astype(np.bool_)) < room

    def _prefix(self, key: bytes) -> _Prefix | None:
        """Return the cached results for a completion, or None if no text of the language begins with it.

        `key` holds the int64 tokens of the completion as bytes.
        """
        prefix = self._prefixes.get(key)
        if prefix is None:
            matcher = self._matcher(key)
            keys = None if matcher is None else self._key_state(key)
            if matcher is None or keys is None:
                return None
            accepted = matcher.is_accepting() and (self.parser is None or self._accepts(self._text(key)))
            prefix = self._prefixes[key] = _Prefix(accepted, keys)
            if len(self._prefixes) > self._memory:
                self._prefixes.popitem(last=False)
        else:
            self._prefixes.move_to_end(key)
        return prefix

    def _key_state(self, key: bytes) -> KeyState | None:
        """Return the keys of the objects that a completion has begun, or None if an object repeats a key."""
        if self._repeated is None:
            return KeyState()
        if not key or (parent := self._prefixes.get(key[:-8])) is None:
            return KeyState().advance(self._text(key))
        return parent.keys.advance(self._tokenization.token_bytes[int.from_bytes(key[-8:], "little")])

    def _text(self, key: bytes) -> bytes:
        return self._tokenization.bytes(np.frombuffer(key, dtype=np.int64).tolist())

    def _matcher(self, key: bytes) -> LLMatcher | None:
        """Return a matcher that has consumed the tokens of `key`, or None if they begin no text of the language."""
        if key in self._matchers:
            self._matchers.move_to_end(key)
            return self._matchers[key]
        parent = key[:-8]
        held = next((cut for cut in range(len(parent), 0, -8) if key[:cut] in self._matchers), 0)
        tokens = np.frombuffer(key[held:], dtype=np.int64).tolist()
        # A matcher would consume an end-of-sequence token after a text of the language.
        if tokens and (not self._ends.isdisjoint(tokens) or max(tokens) >= self._size):
            return None
        matcher = self._matchers.pop(parent, None) if key and held == len(parent) else None
        if matcher is None:
            matcher = self._matchers.get(key[:held], self._start).deep_copy()
        consumed = matcher.try_consume_tokens(tokens)
        if consumed == len(tokens):
            self._keep(key, matcher)
            return matcher
        if matcher.is_error():
            raise self._error(matcher)
        # A lexer that has exceeded its limits rejects every token, and reports the error only when a mask is computed.
        if consumed == len(tokens) - 1:
            self._keep(parent, matcher)
            before = self._prefix(parent)
            # Computing a mask takes ten times as long as finding one byte that is allowed.
            letters = single_byte_tokens(self._tokenization) if before is not None else []
            if before is not None and not any(matcher.validate_tokens([token]) for token in letters):
                self._viable_mask(parent, before)
        elif has_exceeded_limits(matcher):
            raise self._error(matcher)
        return None

    def _keep(self, key: bytes, matcher: LLMatcher) -> None:
        self._matchers[key] = matcher
        if len(self._matchers) > max(_MIN_MATCHERS, 2 * self._rows):
            self._matchers.popitem(last=False)

    def _viable_mask(self, key: bytes, prefix: _Prefix) -> Bits:
        """Return a mask of the next tokens after which the completion can still become a text of the language.

        End-of-sequence tokens are not included.
        """
        if prefix.viable is None:
            matcher = self._matcher(key)
            assert matcher is not None
            mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8).copy()
            if matcher.is_error():
                del self._matchers[key]
                if has_exceeded_limits(matcher):
                    raise self._error(matcher)
            repeating = [] if self._repeated is None else self._repeated.after(prefix.keys, mask.tobytes())
            for token in (*self._ends, *repeating):
                mask[token >> 3] &= 0xFF ^ (1 << (token & 7))
            prefix.viable = mask
        return prefix.viable

    def _member_mask(self, key: bytes, prefix: _Prefix) -> Bits:
        """Return a mask of the next tokens after which the completion is a complete text of the language."""
        if prefix.members is None:
            viable = self._viable_mask(key, prefix)
            found, uncertain = self._find_closing_tokens(key, viable)
            matcher = self._matcher(key) if len(uncertain) else None
            ends = [
                token
                for token in uncertain.tolist()
                if matcher is not None and matcher.validate_tokens([token, self._eos]) == 2
            ]
            if self.parser is not None:
                text = self._text(key)
                ends = [token for token in ends if self._accepts(text + self._tokenization.bytes([token]))]
            members = np.zeros(8 * len(viable), dtype=np.bool_)
            members[found], members[ends] = True, True
            prefix.members = np.packbits(members, bitorder="little")
        return prefix.members

    def _find_closing_tokens(self, key: bytes, viable: Bits) -> tuple[Tokens, Tokens]:
        """Find the viable next tokens after which the completion is or may be a complete text of the language.

        Returns tokens (l,) of which this is known, and tokens (m,) that must be tested.
        """
        tokens = np.flatnonzero(np.unpackbits(viable, bitorder="little"))
        if len(tokens) <= _MIN_MATCHERS:
            return tokens[:0], tokens
        return self._shortlist.among(tokens, np.frombuffer(key, dtype=np.int64))

    def _error(self, matcher: LLMatcher) -> InputError:
        first, *others = matcher.get_error().splitlines() or ["it does not compile"]
        # For a regular expression, a later line contains the specific error.
        cause = next((line.removeprefix("error: ") for line in others if line.startswith("error: ")), None)
        if self._field == "lark":
            first = re.sub(r"^(?:at )?(\d+)\((\d+)\): ", r"line \1, column \2: ", first)
            hint = first if cause is None else f"{first.removesuffix(' regex parse error:')} {cause}"
        else:
            about = r"at \d+\(\d+\): |failed to compile JSON schema: |invalid regex .* \(in regex\): "
            hint = cause or re.sub(f"^({about})+", "", first)
        return InputError(self._field, self._source, hint)


def _completions(decoding: Decoding, rows: Tensor) -> tuple[list[Tokens], list[int]]:
    """Return the int64 tokens of each completion, as views of the batch, and its distance from the length limit."""
    # NumPy takes a third of the time of PyTorch for a few rows.
    index, sequences = rows.numpy(), decoding.tokens.numpy()
    starts, lengths, limits = (
        each.numpy()[index].tolist() for each in (decoding.start, decoding.lengths, decoding.limit)
    )
    completions = [
        sequences[row, start:length]
        for row, start, length in zip(index.tolist(), starts, lengths, strict=True)
    ]
    return completions, [limit - length for limit, length in zip(limits, lengths, strict=True)]


def shorten(text: str) -> str:
    """Truncate a text for an error message if it is long.

    Args:
        text: Text of any length.
    """
    return text if len(text) <= _MAX_QUOTED_CHARACTERS else text[: _MAX_QUOTED_CHARACTERS - 1] + "…"
