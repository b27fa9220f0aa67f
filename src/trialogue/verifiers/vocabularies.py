"""Matchers of llguidance, and vocabularies besides the model's own: its tokens with an end mark, and single bytes."""

from functools import cache, lru_cache
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization

END_MARK = "\x00"  # a character that JSON does not allow anywhere, and few texts have
END_OF_BYTES = 256
_LIMITS = LLParserLimits(step_lexer_fuel=20_000_000)
"""A mask may take a second: a lexer that gives up answers no to whatever comes, without a word."""


def matcher_of(tokenizer: Any, grammar: str) -> LLMatcher:
    """A matcher of the texts of `grammar`, in Lark or JSON, by the tokens of an `LLTokenizer`; it may be in error."""
    return LLMatcher(tokenizer, grammar, log_level=0, limits=_LIMITS)


def has_given_up(matcher: LLMatcher) -> bool:
    """Whether `matcher` refuses tokens for want of resources; the mask that it is asked for brings that to light.

    A matcher that no token can continue is of no further use either, but nothing is wrong with it.
    """
    matcher.compute_bitmask()
    return bool(matcher.is_error() and not matcher.get_error().startswith("NoExtension"))


class _Vocabulary:
    """Byte strings and an end of sequence, as llguidance reads them."""

    bos_token_id = None

    def __init__(self, tokens: list[bytes]) -> None:
        self.tokens = [*tokens, b"</s>"]
        self.eos_token_id = len(self.tokens) - 1
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text: str) -> list[int]:
        raise NotImplementedError("no text is ever encoded, because nothing is forced")


def _tokenizer(tokens: list[bytes]) -> Any:
    return LLTokenizer(TokenizerWrapper(_Vocabulary(tokens)), slices=[])


@lru_cache(maxsize=4)
def marking_tokenizer(tokenization: Tokenization) -> tuple[LLTokenizer, NDArray[np.bool_]]:
    """Every token twice, by itself and with the end mark behind it; and which (vocab,) stand for bytes at all."""
    table, mark = written(tokenization), END_MARK.encode()
    tokenizer = _tokenizer([*table, *(own and own + mark for own in table)])
    return tokenizer, np.array([bool(own) for own in table])


@cache
def byte_tokenizer() -> Any:
    """A token for every byte, and `END_OF_BYTES`; 0xFF, which is in no UTF-8 text, marks what is special."""
    return _tokenizer([bytes([byte]) for byte in range(255)] + [b""])


@lru_cache(maxsize=4)
def written(tokenization: Tokenization) -> list[bytes]:
    """The bytes of every token."""
    return [tokenization.bytes([token]) for token in range(tokenization.vocab_size)]
