"""Texts of a language as an exact verifier: a grammar of tokens, and what decides on complete texts of it.

llguidance parses bytes, so a prefix is judged by the bytes its tokens stand for, also inside a character. Where the
next bytes are forced, llguidance by default lets only their canonical tokens through. A verifier must not narrow the
distribution beyond the language, so every grammar here is compiled with `no_forcing`: a token is allowed whenever its
bytes are.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
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
from trialogue.verifiers.closing_tokens import ClosingTokens
from trialogue.verifiers.stop_strings import StopStrings
from trialogue.verifiers.stopped_language import StoppedLanguage
from trialogue.verifiers.vocabularies import has_given_up, matcher_of, written

_NO_FORCING = '\n%llguidance {"no_forcing": true}\n'
_LEAST_MATCHERS = 64
_LONGEST_QUOTE = 60
_ANSWERS = 1024

Bits = NDArray[np.uint8]
Tokens = NDArray[np.int64]


class Invalid(ValueError):
    """Why a text of a grammar is not in a language, in a line."""


class NotValid(Invalid, NotValidError):
    """Why a whole text of a grammar is not in a language."""


class Language(NamedTuple):
    """Texts that a grammar describes, of those `parse` raises `Invalid` for some."""

    grammar: str
    """In llguidance's dialect of Lark"""
    source: str
    """What it was made from, as errors quote it"""
    parse: Callable[[str], Any] | None = None
    notes: tuple[str, ...] = ()

    def acceptance(self) -> Callable[[bytes], bool]:
        """Whether a text of the grammar is one that `parse`, if there is one, accepts; latest answers are kept."""

        @lru_cache(maxsize=_ANSWERS)
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
    """What is known of a viable completion; masks are little-endian bits over the tokenizer's vocabulary."""

    accepted: bool
    viable: Bits | None = None
    members: Bits | None = None


@validated
class LanguageVerifier(Verifier):
    """1 where a text is in `language` (complete) or can still be continued to one that is (prefix), else 0.

    The text is the completion; the prompt is not judged. An end of sequence is no part of it: what comes before has to
    be in the language; so has what comes before a stop string, for the verifier that `up_to` returns. What the
    language's `parse` refuses is refused when the text is complete: a prefix counts as long as the grammar goes on.
    Two limits of viability come with llguidance: lexemes of a Lark grammar are read greedily, without going back (as
    Lark itself does), and a rule that recurs without end counts as one that can be completed.

    `memory` completions keep their masks, of one bit per token, so that returning to one computes nothing. One
    verifier may serve several threads. Raises `InputError` with `field` where the grammar does not compile or admits
    nothing.
    """

    scope = "completion"
    most = 1.0
    has_mask = True

    def __init__(self, language: Language, tokenization: Tokenization, memory: Count, field: str) -> None:
        self._grammar, self._tokenization = language.grammar, tokenization
        self.parser, self.notes = language.parse, language.notes
        self._field, self._source = field, language.source
        self._memory = memory
        tokenizer = tokenization.matcher_tokenizer
        self._size, self._eos = tokenizer.vocab_size, tokenizer.eos_token
        self._ends = frozenset(tokenizer.eos_tokens)
        self._letters = [token for token, own in enumerate(written(tokenization)) if len(own) == 1]
        self._start = matcher_of(tokenizer, self._grammar + _NO_FORCING)
        if self._start.is_error():
            raise self._error(self._start)
        self._matchers: OrderedDict[bytes, LLMatcher] = OrderedDict()  # by the tokens each has consumed
        self._prefixes: OrderedDict[bytes, _Prefix] = OrderedDict()
        self._rows, self._lock = 1, Lock()
        self._stopped: StoppedLanguage | None = None
        self._accepts = language.acceptance()
        self._shortlist = ClosingTokens(self._grammar, _NO_FORCING, tokenization)
        start = self._prefix(b"")
        if start is None or not (start.accepted or self._viable(b"", start).any()):
            raise InputError(field, self._source, "it admits nothing that the tokenizer can write")

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """The verifier of texts up to the first of the strings `stop`, at which `generate` is to stop.

        A child that completes one is in if the text before it is; a prefix may end in the beginning of one.
        """
        stopped = copy(self)
        stopped._stopped = StoppedLanguage(
            self._grammar + _NO_FORCING, StopStrings(stop), self._tokenization, self._error, self._accepts
        )
        return stopped

    def prepared(self) -> Self:
        """The verifier itself, after what the first question would have waited for."""
        with self._lock:
            self._shortlist.prepare()
            if self._stopped is not None:
                self._stopped.prepare()
        return self

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Verdicts (n,) bool on the sequences in `rows` (n,)."""
        complete = decoding.complete[rows].tolist()
        with self._lock:
            self._rows = max(self._rows, len(complete))
            verdicts = []
            for tokens, ended in zip(_completions(decoding, rows), complete, strict=True):
                text = tokens[:-1] if ended and len(tokens) and tokens[-1] == decoding.eos else tokens
                verdict = None if self._stopped is None else self._stopped.verdict(text, ended)
                if verdict is None:
                    prefix = self._prefix(text.tobytes())
                    verdict = prefix is not None and (prefix.accepted or not ended)
                verdicts.append(verdict)
        return torch.tensor(verdicts, dtype=torch.bool)

    def children(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Verdicts (n, vocab) bool on all one-token continuations of `rows` (n,).

        The end of sequence is allowed where the text so far is in the language. A continuation that reaches the limit
        is complete, and has to be in the language itself.
        """
        last = (decoding.lengths + 1 >= decoding.limit)[rows].tolist()
        verdicts = np.zeros((len(last), decoding.vocab_size), dtype=np.bool_)
        with self._lock:
            self._rows = max(self._rows, len(last))
            for row, tokens in enumerate(_completions(decoding, rows)):
                key = tokens.tobytes()
                prefix = self._prefix(key)
                if prefix is not None:
                    mask = self._members(key, prefix) if last[row] else self._viable(key, prefix)
                    verdicts[row] = np.unpackbits(mask, count=decoding.vocab_size, bitorder="little")
                    if decoding.eos is not None:
                        verdicts[row, decoding.eos] = prefix.accepted
                if self._stopped is not None:
                    self._stopped.correct(verdicts[row], tokens, last[row])
        return torch.from_numpy(verdicts)

    def _prefix(self, key: bytes) -> _Prefix | None:
        """What is known of the completion whose tokens are the bytes of `key`; None where it is not viable."""
        prefix = self._prefixes.get(key)
        if prefix is None:
            matcher = self._matcher(key)
            if matcher is None:
                return None
            accepted = matcher.is_accepting() and self._accepts(self._text(key))
            prefix = self._prefixes[key] = _Prefix(accepted)
            if len(self._prefixes) > self._memory:
                self._prefixes.popitem(last=False)
        else:
            self._prefixes.move_to_end(key)
        return prefix

    def _text(self, key: bytes) -> bytes:
        return self._tokenization.bytes(np.frombuffer(key, dtype=np.int64).tolist())

    def _matcher(self, key: bytes) -> LLMatcher | None:
        """A matcher that has consumed the tokens of `key`; None where they are not viable."""
        if key in self._matchers:
            self._matchers.move_to_end(key)
            return self._matchers[key]
        tokens = np.frombuffer(key, dtype=np.int64).tolist()
        # A matcher consumes an end of sequence where the text before it is in the language.
        if tokens and (not self._ends.isdisjoint(tokens) or max(tokens) >= self._size):
            return None
        parent = key[:-8]
        matcher = self._matchers.pop(parent, None) if key else None
        consumed = len(tokens) - 1
        if matcher is None:
            held = next((cut for cut in range(len(key) - 8, 0, -8) if key[:cut] in self._matchers), 0)
            matcher = self._matchers.get(key[:held], self._start).deep_copy()
            consumed = held // 8
        consumed += matcher.try_consume_tokens(tokens[consumed:])
        if consumed == len(tokens):
            self._keep(key, matcher)
            return matcher
        if matcher.is_error():
            raise self._error(matcher)
        # A lexer that has given up refuses every token, and is in error only when it is asked for a mask.
        if consumed == len(tokens) - 1:
            self._keep(parent, matcher)
            before = self._prefix(parent)
            # A mask takes ten times as long as to see that some byte is let through.
            if before is not None and not any(matcher.validate_tokens([token]) for token in self._letters):
                self._viable(parent, before)
        elif has_given_up(matcher):
            raise self._error(matcher)
        return None

    def _keep(self, key: bytes, matcher: LLMatcher) -> None:
        self._matchers[key] = matcher
        if len(self._matchers) > max(_LEAST_MATCHERS, 2 * self._rows):
            self._matchers.popitem(last=False)

    def _viable(self, key: bytes, prefix: _Prefix) -> Bits:
        """Which tokens continue a completion to a viable one; the end of sequence is not among them."""
        if prefix.viable is None:
            matcher = self._matcher(key)
            assert matcher is not None
            mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8).copy()
            if matcher.is_error():
                del self._matchers[key]
                if has_given_up(matcher):
                    raise self._error(matcher)
            for token in self._ends:
                mask[token >> 3] &= 0xFF ^ (1 << (token & 7))
            prefix.viable = mask
        return prefix.viable

    def _members(self, key: bytes, prefix: _Prefix) -> Bits:
        """Which tokens continue a completion to a text of the language."""
        if prefix.members is None:
            viable = self._viable(key, prefix)
            prefix.members = np.zeros_like(viable)
            candidates = self._closing(key, viable).tolist()
            matcher = self._matcher(key) if candidates else None
            if matcher is not None:
                ends = [token for token in candidates if matcher.validate_tokens([token, self._eos]) == 2]
                if self.parser is not None:
                    text = self._text(key)
                    ends = [
                        token for token in ends if self._accepts(text + self._tokenization.bytes([token]))
                    ]
                for token in ends:
                    prefix.members[token >> 3] |= 1 << (token & 7)
        return prefix.members

    def _closing(self, key: bytes, viable: Bits) -> Tokens:
        """Tokens (m,) among which are all that lead to a text of the language."""
        tokens = np.flatnonzero(np.unpackbits(viable, bitorder="little"))
        if len(tokens) <= _LEAST_MATCHERS:
            return tokens
        return self._shortlist.among(tokens, np.frombuffer(key, dtype=np.int64))

    def _error(self, matcher: LLMatcher) -> InputError:
        first, *others = matcher.get_error().splitlines() or ["it does not compile"]
        # A regular expression has an error of its own.
        cause = next((line.removeprefix("error: ") for line in others if line.startswith("error: ")), None)
        if self._field == "lark":
            first = re.sub(r"^(?:at )?(\d+)\((\d+)\): ", r"line \1, column \2: ", first)
            hint = first if cause is None else f"{first.removesuffix(' regex parse error:')} {cause}"
        else:
            about = r"at \d+\(\d+\): |failed to compile JSON schema: |invalid regex .* \(in regex\): "
            hint = cause or re.sub(f"^({about})+", "", first)
        return InputError(self._field, self._source, hint)


def _completions(decoding: Decoding, rows: Tensor) -> Iterator[Tokens]:
    """The tokens of each completion, int64."""
    sequences = decoding.tokens[rows].numpy()
    starts, lengths = decoding.start[rows].tolist(), decoding.lengths[rows].tolist()
    for tokens, start, length in zip(sequences, starts, lengths, strict=True):
        yield tokens[start:length]


def shortened(text: str) -> str:
    """`text` as an error quotes it."""
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
