"""The tokens that may lead to a text of a language: asking about each of a vocabulary in turn would be slow."""

import json
from functools import cached_property

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.vocabularies import END_MARK, marking_tokenizer, matcher_of


class ClosingTokens:
    """Of the language of `start` in `grammar`, in the vocabulary of `tokenization`; `options` end every grammar."""

    def __init__(self, grammar: str, options: str, tokenization: Tokenization) -> None:
        self._grammar, self._options, self._tokenization = grammar, options, tokenization

    def prepare(self) -> None:
        """Compile now what the first question needs."""
        _ = self._marked

    def among(self, tokens: NDArray[np.int64], consumed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of `tokens` (n,) those (m,) among which are all that lead from `consumed` (k,) to a text of the language."""
        if self._marked.is_error():
            return tokens
        matcher = self._marked.deep_copy()
        if matcher.try_consume_tokens(consumed.tolist()) < len(consumed):
            return tokens
        size = self._tokenization.vocab_size
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        closing, marked = np.zeros(size, dtype=np.bool_), bits[size : 2 * size]
        closing[: len(marked)] = marked
        written = marking_tokenizer(self._tokenization)[1]
        tokens = tokens[tokens < size]
        return tokens[closing[tokens] | ~written[tokens]]

    @cached_property
    def _marked(self) -> LLMatcher:
        """A matcher of the texts of the language with the end mark behind them."""
        tokenizer, _ = marking_tokenizer(self._tokenization)
        outer = f"start: @text {json.dumps(END_MARK)}{self._options}"
        grammars = [{"lark_grammar": outer}, {"name": "text", "lark_grammar": self._grammar + self._options}]
        return matcher_of(tokenizer, json.dumps({"grammars": grammars}))
