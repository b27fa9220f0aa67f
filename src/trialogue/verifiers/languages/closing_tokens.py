"""Fast search for next tokens after which a text may be complete."""

import json
from functools import cached_property

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from trialogue.models.tokenization import Tokenization
from trialogue.verifiers.languages.vocabularies import END_MARK, end_marked_tokenizer, make_matcher


class ClosingTokens:
    """Finds the next tokens after which a text of a formal language may be complete.

    A single token mask excludes most other tokens, so that few tokens must be tested one by one.

    Args:
        grammar: Grammar with the start rule `start`, in llguidance's dialect of Lark.
        options: llguidance options that are appended to every grammar.
        tokenization: Tokenization of the language model.
    """

    def __init__(self, grammar: str, options: str, tokenization: Tokenization) -> None:
        self._grammar, self._options, self._tokenization = grammar, options, tokenization

    def prepare(self) -> None:
        """Compile the grammar now instead of in the first call of `among`."""
        _ = self._marked

    def among(self, tokens: NDArray[np.int64], consumed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those candidates for the next token after which the text may be complete.

        Args:
            tokens: Candidates (n,) int64 for the next token.
            consumed: Tokens (k,) int64 of the text so far.

        Returns:
            Subset (m,) of the candidates. It contains every token after which the text is in the language, and possibly
            others.
        """
        if self._marked.is_error():
            return tokens
        matcher = self._marked.deep_copy()
        if matcher.try_consume_tokens(consumed.tolist()) < len(consumed):
            return tokens
        size = self._tokenization.vocab_size
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        closing, marked = np.zeros(size, dtype=np.bool_), bits[size : 2 * size]
        closing[: len(marked)] = marked
        has_bytes = end_marked_tokenizer(self._tokenization)[1]
        tokens = tokens[tokens < size]
        return tokens[closing[tokens] | ~has_bytes[tokens]]

    @cached_property
    def _marked(self) -> LLMatcher:
        """Matcher for the texts of the language followed by the end mark."""
        tokenizer, _ = end_marked_tokenizer(self._tokenization)
        outer = f"start: @text {json.dumps(END_MARK)}{self._options}"
        grammars = [{"lark_grammar": outer}, {"name": "text", "lark_grammar": self._grammar + self._options}]
        return make_matcher(tokenizer, json.dumps({"grammars": grammars}))
