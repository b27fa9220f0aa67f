"""Small languages in plain Python, and a vocabulary of a few byte strings for them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from trialogue.models.tokenization import Tokenization

LETTERS = (b"a", b"b", b"c", b"ab", b"\xc3", b"\xa9", b"\xa9a", b"bc")
JSON = (b"{", b'"', b"a", b'"a"', b'":', b":", b"1", b"2", b"12", b",", b"}", b"true", b"tr", b"ue", b" ")
PADDED = 2


def tokenization(pieces: Sequence[bytes]) -> Tokenization:
    """Return a byte-level tokenizer with the tokens `pieces` and EOS. The model vocabulary has `PADDED` more
    entries.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letter = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    vocabulary = {"".join(letter[byte] for byte in piece): token for token, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    return Tokenization(fast, len(pieces) + 1 + PADDED)


@dataclass(frozen=True, eq=False)
class Language:
    """A set of texts, defined by `contains`. Every viable prefix needs at most `reach` more `letters`."""

    name: str
    build: Callable[[Tokenization], object]
    contains: Callable[[str], bool]
    pieces: Sequence[bytes] = LETTERS
    letters: str = "abcé"
    reach: int = 2

    def __str__(self) -> str:
        return self.name

    @cached_property
    def tokenization(self) -> Tokenization:
        return tokenization(self.pieces)

    @cached_property
    def _endings(self) -> list[bytes]:
        words = (product(self.letters, repeat=size) for size in range(self.reach + 1))
        endings = ["".join(word).encode() for group in words for word in group]
        # A prefix may end inside é.
        return endings + [b"\xa9" + word for word in endings]

    @cache  # noqa: B019 (languages are few and small)
    def member(self, text: bytes) -> bool:
        try:
            return self.contains(text.decode())
        except UnicodeDecodeError:
            return False

    @cache  # noqa: B019
    def viable(self, text: bytes) -> bool:
        return any(self.member(text + ending) for ending in self._endings)

    def verdict(self, tokens: Sequence[int], limit: int) -> bool:
        """Return whether a completion is correct: a member if it is complete, otherwise a viable prefix."""
        eos = len(self.pieces)
        ended = tokens[-1:] == (eos,)
        tokens = tokens[:-1] if ended else tokens
        if any(token >= eos for token in tokens):
            return False
        text = b"".join(self.pieces[token] for token in tokens)
        return self.member(text) if ended or len(tokens) >= limit else self.viable(text)


@dataclass(frozen=True, eq=False)
class FiniteLanguage(Language):
    """A language with the members `texts`."""

    texts: Sequence[str] = ()

    @cache  # noqa: B019
    def viable(self, text: bytes) -> bool:
        return any(one.encode().startswith(text) for one in self.texts)


def matching(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether Python's `re` matches an entire text."""
    return lambda text: re.fullmatch(pattern, text) is not None
