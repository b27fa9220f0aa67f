"""Matchers of llguidance, and special tokenizers for them.

One tokenizer has a copy of each token that is followed by an end mark, one has single bytes as tokens, and one has
both bytes and the tokens of JSON strings, each followed by the quotation mark that ends the string.
"""

from functools import cache, lru_cache
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization

END_MARK = "\x00"  # JSON allows this character nowhere, and few texts contain it.
END_OF_BYTES = 256
_BYTES = [bytes([byte]) for byte in range(255)]
NO_FORCING = '\n%llguidance {"no_forcing": true}\n'
"""Option of a grammar that allows all tokens whose bytes are allowed, not only canonical ones."""
_LEXER_FUEL = 20_000_000
"""A limit at which a mask may take about a second. A lexer that reaches the limit rejects every token silently."""


def make_matcher(tokenizer: Any, grammar: str, max_items: int = 50_000) -> LLMatcher:
    """Create an llguidance matcher, which tracks whether a sequence of tokens matches a grammar.

    The caller must check `is_error()` of the result, because a faulty grammar does not raise an exception.

    Args:
        tokenizer: An `LLTokenizer`.
        grammar: Grammar in Lark or JSON format.
        max_items: Maximum number of parser items per mask. If it is exceeded, the mask is empty, and `is_error()` of
            the matcher returns True.
    """
    limits = LLParserLimits(step_lexer_fuel=_LEXER_FUEL, step_max_items=max_items)
    return LLMatcher(tokenizer, grammar, log_level=0, limits=limits)


def has_exceeded_limits(matcher: LLMatcher) -> bool:
    """Return whether a matcher rejects tokens because it has exceeded its resource limits.

    A matcher detects this only when it computes a token mask, so a mask is computed. An error because no token can
    follow is not counted.

    Args:
        matcher: llguidance matcher.
    """
    matcher.compute_bitmask()
    return bool(matcher.is_error() and not matcher.get_error().startswith("NoExtension"))


def allowed_bytes(matcher: LLMatcher) -> list[int]:
    """Return the bytes that may follow next in a text.

    Args:
        matcher: Matcher of a grammar with `byte_tokenizer`.
    """
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
    allowed: list[int] = np.flatnonzero(bits[:255]).tolist()
    return allowed


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
    """Return a tokenizer that contains every token twice: unchanged, and followed by a character that marks the end.

    Args:
        tokenization: Tokenization of the language model.

    Returns:
        The tokenizer, and a bool array (vocab,) that is True for tokens that represent at least one byte, but not the
        end mark. Token t followed by the end mark has the id vocab + t.
    """
    table, mark = tokenization.token_bytes, END_MARK.encode()
    tokenizer = _tokenizer([*table, *(data and data + mark for data in table)])
    return tokenizer, np.array([bool(data) and mark not in data for data in table])


@cache
def byte_tokenizer() -> Any:
    """Return a tokenizer with one token per byte, and the additional token `END_OF_BYTES` for the end of a text.

    The byte 0xFF is missing. It occurs in no UTF-8 text, and llguidance reserves it for special tokens.
    """
    return _tokenizer([*_BYTES, b""])


@lru_cache(maxsize=4)
def string_ending_tokenizer(tokenization: Tokenization) -> tuple[LLTokenizer, NDArray[np.bool_]]:
    """Return a tokenizer with the tokens of `byte_tokenizer`, and with each token followed by a quotation mark.

    Args:
        tokenization: Tokenization of the language model.

    Returns:
        The tokenizer, and a bool array (vocab,) that is True for tokens that represent at least one byte, but no
        quotation mark or backslash. Such a token t followed by a quotation mark has the id 256 + t.
    """
    table = tokenization.token_bytes
    plain = [bool(data) and b'"' not in data and b"\\" not in data for data in table]
    ends = (data + b'"' if kept else b"" for data, kept in zip(table, plain, strict=True))
    return _tokenizer([*_BYTES, b"", *ends]), np.array(plain)


@lru_cache(maxsize=4)
def single_byte_tokens(tokenization: Tokenization) -> list[int]:
    """Return the ids of the tokens that represent one byte.

    Args:
        tokenization: Tokenization of the language model.
    """
    return [token for token, data in enumerate(tokenization.token_bytes) if len(data) == 1]
