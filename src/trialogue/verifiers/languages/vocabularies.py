"""Matchers of llguidance, and two additional vocabularies: tokens followed by an end mark, and single bytes."""

from functools import cache, lru_cache
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization

END_MARK = "\x00"  # JSON allows this character nowhere, and few texts contain it.
END_OF_BYTES = 256
_LIMITS = LLParserLimits(step_lexer_fuel=20_000_000)
"""A limit at which a mask may take about a second. A lexer that reaches the limit rejects every token silently."""


def make_matcher(tokenizer: Any, grammar: str) -> LLMatcher:
    """Return a matcher for a grammar. The caller must check `is_error()`.

    Args:
        tokenizer: An `LLTokenizer`.
        grammar: Grammar in Lark or JSON format.
    """
    return LLMatcher(tokenizer, grammar, log_level=0, limits=_LIMITS)


def has_exceeded_limits(matcher: LLMatcher) -> bool:
    """Return whether `matcher` rejects tokens because it has exceeded its resource limits.

    The error appears only when a mask is computed. A matcher that no token can continue also reports an error, but it
    is a regular end.
    """
    matcher.compute_bitmask()
    return bool(matcher.is_error() and not matcher.get_error().startswith("NoExtension"))


class _Vocabulary:
    """Byte strings and an end-of-sequence token in the interface that llguidance expects."""

    bos_token_id = None

    def __init__(self, tokens: list[bytes]) -> None:
        self.tokens = [*tokens, b"</s>"]
        self.eos_token_id = len(self.tokens) - 1
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text: str) -> list[int]:
        raise NotImplementedError("Text is never encoded, because grammars are compiled with no_forcing.")


def _tokenizer(tokens: list[bytes]) -> Any:
    return LLTokenizer(TokenizerWrapper(_Vocabulary(tokens)), slices=[])


@lru_cache(maxsize=4)
def end_marked_tokenizer(tokenization: Tokenization) -> tuple[LLTokenizer, NDArray[np.bool_]]:
    """Return a tokenizer that contains every token twice, without and with the end mark appended.

    Also returned is a mask (vocab,) of the tokens that represent at least one byte.
    """
    table, mark = token_bytes(tokenization), END_MARK.encode()
    tokenizer = _tokenizer([*table, *(data and data + mark for data in table)])
    return tokenizer, np.array([bool(data) for data in table])


@cache
def byte_tokenizer() -> Any:
    """Return a tokenizer with one token per byte and the token `END_OF_BYTES`.

    The byte 0xFF occurs in no UTF-8 text. llguidance reserves it for special tokens.
    """
    return _tokenizer([bytes([byte]) for byte in range(255)] + [b""])


@lru_cache(maxsize=4)
def token_bytes(tokenization: Tokenization) -> list[bytes]:
    """Return the bytes of every token."""
    return [tokenization.bytes([token]) for token in range(tokenization.vocab_size)]
