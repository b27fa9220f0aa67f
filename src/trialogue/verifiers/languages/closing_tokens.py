"""Fast search for next tokens after which a text may be complete."""

import json
from functools import cached_property

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.vocabularies import (
    END_MARK,
    end_marked_tokenizer,
    make_matcher,
)

Tokens = NDArray[np.int64]

_MAX_ITEMS = 2_000_000
"""Limit of llguidance on parser items per mask. Every token that ends a text adds two of them."""


class ClosingTokens:
    """Finds the next tokens after which a text of a formal language may be complete.

    A single token mask excludes most other tokens, so that few tokens must be tested one by one.

    Args:
        grammar: Grammar with the start rule `start`, in llguidance's dialect of Lark.
        options: llguidance options that are appended to every grammar.
        tokenization: Tokenization of the language model.
        is_regular: Whether the grammar is `start: ` followed by a single regular expression.
    """

    def __init__(self, grammar: str, options: str, tokenization: Tokenization, is_regular: bool) -> None:
        if is_regular:
            # Without the end mark, a text before the mark is complete exactly if it is in the language.
            grammar = f"start: TEXT\nTEXT: {grammar.removeprefix('start: ')} & /[^\\x00]*/"
        self._grammar, self._options, self._tokenization = grammar, options, tokenization
        self._is_regular = is_regular

    def prepare(self) -> None:
        """Compile the grammar now instead of in the first call of `among`."""
        _ = self._marked

    def among(self, tokens: Tokens, consumed: Tokens) -> tuple[Tokens, Tokens]:
        """Find the candidates for the next token after which the text is or may be in the language.

        Args:
            tokens: Candidates (n,) int64 for the next token.
            consumed: Tokens (k,) int64 of the text so far.

        Returns:
            Candidates (l,) after which the text is in the language, and candidates (m,) that must be tested.
        """
        none = tokens[:0]
        if self._marked.is_error():
            return none, tokens
        matcher = self._marked.deep_copy()
        if matcher.try_consume_tokens(consumed.tolist()) < len(consumed):
            return none, tokens
        size = self._tokenization.vocab_size
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        if matcher.is_error():
            return none, tokens
        closing, marked = np.zeros(size, dtype=np.bool_), bits[size : 2 * size]
        closing[: len(marked)] = marked
        has_plain_bytes = end_marked_tokenizer(self._tokenization)[1]
        tokens = tokens[tokens < size]
        found, others = tokens[closing[tokens]], tokens[~closing[tokens] & ~has_plain_bytes[tokens]]
        return (found, others) if self._is_regular else (none, np.concatenate((found, others)))

    @cached_property
    def _marked(self) -> LLMatcher:
        """Matcher for the texts of the language followed by the end mark."""
        tokenizer, _ = end_marked_tokenizer(self._tokenization)
        outer = f"start: @text {json.dumps(END_MARK)}{self._options}"
        grammars = [{"lark_grammar": outer}, {"name": "text", "lark_grammar": self._grammar + self._options}]
        return make_matcher(tokenizer, json.dumps({"grammars": grammars}), max_items=_MAX_ITEMS)
