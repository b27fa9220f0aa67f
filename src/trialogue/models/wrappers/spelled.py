"""Tokenization of models whose tokens are given as strings, such as tables and structured distributions."""

from collections.abc import Sequence
from typing import Any

from trialogue.errors import InputError, require_text
from trialogue.models.tokenization import Tokenization

_PRIVATE = tuple(map(chr, range(0xE000, 0xF900)))
"""Characters without a meaning in Unicode"""


class SpelledTokenization(Tokenization):
    """Tokenization defined by a list of token strings, for use with text verifiers.

    Args:
        spellings: String of each token, in the order of token ids.
        eos: Id of the token that ends a sequence, if any.

    Raises:
        InputError: If a string is empty, or if two strings are equal.
    """

    def __init__(self, spellings: Sequence[str], eos: int | None = None) -> None:
        for spelling in spellings:
            require_text("tokens", spelling)
            if not spelling or spellings.count(spelling) > 1:
                raise InputError(
                    "tokens", spelling, "give each token a different text of at least one character"
                )
        self.spellings = tuple(spellings)
        # Text matchers require an end-of-sequence token, even if the oracle has none. No token contains its character.
        end = len(spellings) if eos is None else eos
        used = set().union(*spellings)
        names = [*spellings] if eos is not None else [*spellings, next(c for c in _PRIVATE if c not in used)]
        super().__init__(_fast_tokenizer(names, end), len(spellings))
        self.eos = eos

    def encode(self, text: str) -> list[int]:
        """Return a shortest sequence of tokens that spells `text`.

        Raises:
            InputError: If no sequence of tokens spells `text`.
        """
        require_text("text", text)
        shortest: list[list[int] | None] = [[]]
        for stop in range(1, len(text) + 1):
            candidates = [
                [*before, token]
                for token, spelling in enumerate(self.spellings)
                if token != self.eos
                and text.endswith(spelling, 0, stop)
                and (before := shortest[stop - len(spelling)]) is not None
            ]
            shortest.append(min(candidates, key=len, default=None))
        tokens = shortest[-1]
        if tokens is None:
            available = ", ".join(repr(spelling) for spelling in self.spellings[:12])
            raise InputError("text", text, f"no sequence of tokens spells it. Use the tokens {available}")
        return tokens

    def encode_completion(self, text: str, prompt: str = "") -> list[int]:
        """Return the token ids of `text`. They do not depend on the prompt.

        Raises:
            InputError: If no sequence of tokens spells `text`.
        """
        del prompt
        return self.encode(text)


def _fast_tokenizer(names: Sequence[str], end: int) -> Any:
    """Return a fast tokenizer of transformers with one token per name, where token `end` ends a sequence."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def byte_level(name: str) -> str:
        return "".join(piece for piece, _ in pre_tokenizer.pre_tokenize_str(name))

    vocabulary = {name if index == end else byte_level(name): index for index, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=names[end])
