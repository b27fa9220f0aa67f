"""Test whether the text before a stop string belongs to a formal language.

A stop string may begin or end inside a token.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.stop_strings import StopStrings
from trialogue.verifiers.languages.vocabularies import (
    END_OF_BYTES,
    byte_tokenizer,
    has_exceeded_limits,
    make_matcher,
)

_MATCHERS = 1024
_STEP = 64  # A cached prefix is used if it is at most this many bytes shorter.

Tokens = NDArray[np.int64]


class _Ending(NamedTuple):
    """Group of tokens after which the text ends at the same position."""

    cut: int
    """Number of bytes before the token that belong to the stop string."""
    own: bytes
    """Bytes at the beginning of the token that belong to the text."""
    closing: Tokens
    """Tokens (n,) that complete a stop string."""
    opening: Tokens
    """Tokens (m,) that begin or continue a stop string without completing it."""


class StoppedLanguage:
    """Tests whether the text before the first stop string belongs to a formal language.

    A stop string is a text at which generation ends. It can begin or end inside a token, so texts are matched byte by
    byte instead of token by token.

    Args:
        grammar: Grammar with the start rule `start`, in llguidance's dialect of Lark.
        stops: Stop strings.
        tokenization: Tokenization of the language model.
        error: Function that converts a failed matcher to the exception to raise.
        accepts: Additional condition on complete texts of the grammar.
    """

    def __init__(
        self,
        grammar: str,
        stops: StopStrings,
        tokenization: Tokenization,
        error: Callable[[LLMatcher], Exception],
        accepts: Callable[[bytes], bool],
    ) -> None:
        self._stops, self._error, self._accepts = stops, error, accepts
        self._token_bytes = tokenization.token_bytes
        self._start = make_matcher(byte_tokenizer(), grammar)
        if self._start.is_error():
            raise error(self._start)
        self._matchers: OrderedDict[bytes, LLMatcher | None] = OrderedDict()
        self._tables: dict[bytes, tuple[Tokens, list[_Ending]]] = {}

    def prepare(self) -> None:
        """Build the table of tokens that begin or complete a stop string, so that the first call is not slow."""
        self._table(b"")

    def verdict(self, tokens: Tokens, ended: bool) -> bool | None:
        """Return whether a completion is accepted, or None if its text contains no stop string that decides this.

        Args:
            tokens: Tokens (n,) int64 of the completion, without an end-of-sequence token.
            ended: Whether the completion is complete.

        Returns:
            True or False if a stop string determines the verdict. None otherwise.
        """
        data = self._bytes(tokens)
        if data is None:
            return False if self._stops.find(self._join_bytes(tokens)) is not None else None
        offset = self._stops.find(data)
        if offset is not None:
            return self._contains(data, len(data) - offset, b"")
        if not ended and any(self._contains(data, len(data) - cut, b"") for cut in self._stops.pending(data)):
            return True
        return None

    def correct(self, verdicts: NDArray[np.bool_], tokens: Tokens, last: bool) -> None:
        """Correct the verdicts on next tokens that begin, continue or complete a stop string, in place.

        The given verdicts ignore stop strings. A token that completes a stop string is accepted only if the text before
        the stop string is in the language.

        Args:
            verdicts: Bool array (vocab,), which states for each next token whether it is accepted. It is modified.
            tokens: Tokens (n,) int64 of the text so far. They contain no complete stop string.
            last: Whether the next token reaches the length limit, so that the sequence is then complete.
        """
        data = self._bytes(tokens)
        closing, endings = self._table(self._stops.held(self._join_bytes(tokens) if data is None else data))
        verdicts[closing] = False
        if data is None:
            return
        for ending in endings:
            if last and not len(ending.closing):
                continue
            if self._contains(data, ending.cut, ending.own):
                verdicts[ending.closing] = True
                if not last:
                    verdicts[ending.opening] = True

    def _join_bytes(self, tokens: Tokens) -> bytes:
        return b"".join(self._token_bytes[token] for token in tokens.tolist())

    def _bytes(self, tokens: Tokens) -> bytes | None:
        """Return the bytes of `tokens`, or None if a token has no bytes. The language contains no such text."""
        parts = [self._token_bytes[token] for token in tokens.tolist()]
        return b"".join(parts) if all(parts) else None

    def _contains(self, data: bytes, cut: int, own: bytes) -> bool:
        """Return whether `data` without its last `cut` bytes, followed by the bytes `own`, is in the language."""
        before = data[: len(data) - cut]
        matcher = self._matcher(before)
        if matcher is None:
            return False
        # A matcher that nothing can continue has stopped and rejects even the end token.
        if not own or matcher.is_stopped():
            return bool(not own and matcher.is_accepting()) and self._accepts(before)
        member: bool = matcher.validate_tokens([*own, END_OF_BYTES]) == len(own) + 1
        if matcher.is_error():
            raise self._error(matcher)
        return member and self._accepts(before + own)

    def _matcher(self, data: bytes) -> LLMatcher | None:
        """Return a matcher that has consumed `data`, or None if no text of the language begins with it."""
        if data in self._matchers:
            self._matchers.move_to_end(data)
            return self._matchers[data]
        shorter = range(len(data) - 1, max(0, len(data) - _STEP) - 1, -1)
        held = next((size for size in shorter if data[:size] in self._matchers), 0)
        matcher = self._matchers.get(data[:held], self._start)
        if matcher is not None:
            matcher = matcher.deep_copy()
            consumed = matcher.try_consume_tokens(list(data[held:]))
            is_viable = consumed == len(data) - held
            if matcher.is_error() or (not is_viable and has_exceeded_limits(matcher)):
                raise self._error(matcher)
            matcher = matcher if is_viable else None
        self._matchers[data] = matcher
        if len(self._matchers) > _MATCHERS:
            self._matchers.popitem(last=False)
        return matcher

    def _table(self, held: bytes) -> tuple[Tokens, list[_Ending]]:
        """Return the tokens (n,) that complete a stop string after `held`, and the groups of all affected tokens."""
        if held not in self._tables:
            stops, endings = (
                self._stops,
                defaultdict[tuple[int, bytes], tuple[list[int], list[int]]](lambda: ([], [])),
            )
            for token, own in enumerate(self._token_bytes):
                if not own:
                    continue
                data = held + own
                offset = stops.find(data)
                for end in stops.pending(data) if offset is None else [offset]:
                    cut = max(0, len(held) - end), data[len(held) : max(len(held), end)]
                    endings[cut][offset is None].append(token)
            table = [
                _Ending(*cut, *(np.array(tokens, dtype=np.int64) for tokens in both))
                for cut, both in endings.items()
            ]
            closing = [ending.closing for ending in table]
            self._tables[held] = np.concatenate(closing or [np.zeros(0, dtype=np.int64)]), table
        return self._tables[held]
