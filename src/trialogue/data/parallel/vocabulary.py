"""One vocabulary of subwords for both languages of a parallel text."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from trialogue.data.byte_level_bpe import trained_byte_level_bpe
from trialogue.errors import InputError, require_text
from trialogue.storage import atomic_write

PAD, EOS, MASK, BOS = range(4)
SPECIAL = ("<pad>", "</s>", "<mask>", "<s>")
"""The tokens that no text stands for, by id."""


class SubwordVocabulary:
    """A byte-level BPE (Sennrich et al. 2016) whose ids 0 to 3 are padding, end of sequence, mask and beginning.

    Every text has tokens, and a text that begins with no space is given back exactly: a space is put before it, so that
    a word is the same token first and later in a sentence, and taken off again. The marks of `SPECIAL` that a text may
    hold are text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        tokenizer.encode_special_tokens = True

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    @property
    def identity(self) -> str:
        """The SHA-256 sum of what is saved: of equal vocabularies, and of no others, it is equal."""
        return hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()

    @classmethod
    def train(cls, texts: Iterable[str], size: int, field: str = "size") -> "SubwordVocabulary":
        """The vocabulary of `size` tokens that is trained on `texts`, the sentences of both languages.

        Pairs that occur once are not merged. Raises `InputError`, which names `field`, where `size` has no room for the
        bytes and the special tokens, and where the texts do not support it.
        """
        return cls(trained_byte_level_bpe(texts, size, SPECIAL, prefix_space=True, field=field))

    def encode(self, texts: list[str]) -> list[list[int]]:
        """The tokens of each of `texts`, without special ones; an empty text has none."""
        for text in texts:
            require_text("texts", text)
        return [encoded.ids for encoded in self._tokenizer.encode_batch_fast(texts)]

    def decode(self, rows: list[list[int]]) -> list[str]:
        """The text of each of `rows` up to its end of sequence; the other special tokens stand for nothing.

        Bytes that are no UTF-8 become U+FFFD. Raises `InputError` for a token that the vocabulary lacks.
        """
        size = len(self)
        texts = []
        for row in rows:
            wrong = next((token for token in row if not 0 <= token < size), None)
            if wrong is not None:
                hint = f"{wrong} is no token of a vocabulary of {size}: it is of another model"
                raise InputError("rows", wrong, hint)
            end = row.index(EOS) if EOS in row else len(row)
            kept = [token for token in row[:end] if token >= len(SPECIAL)]
            texts.append(self._tokenizer.decode(kept, skip_special_tokens=False).removeprefix(" "))
        return texts

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the vocabulary to the file `path`, whole or not at all; raises `InputError` where it cannot be."""
        return atomic_write(path, self._tokenizer.to_str())

    @classmethod
    def open(cls, path: str | os.PathLike[str], identity: str | None = None) -> "SubwordVocabulary":
        """The vocabulary that was saved to `path`.

        Raises `InputError` where there is none, where the file is none of these, and where its identity is not
        `identity`, that of the vocabulary which a model was trained with.
        """
        try:
            tokenizer = Tokenizer.from_str(Path(path).read_bytes().decode())
        except OSError as error:
            hint = f"it cannot be read: {error.strerror or error}"
            raise InputError("vocabulary", os.fspath(path), hint) from error
        except Exception as error:  # the library raises nothing narrower
            raise InputError("vocabulary", os.fspath(path), _NONE) from error
        if [tokenizer.id_to_token(token) for token in range(len(SPECIAL))] != list(SPECIAL):
            raise InputError("vocabulary", os.fspath(path), _NONE)
        opened = cls(tokenizer)
        if identity is not None and opened.identity != identity:
            hint = "it is the vocabulary of another model: name the one that this model was trained with"
            raise InputError("vocabulary", os.fspath(path), hint)
        return opened


_NONE = "it is no vocabulary of subwords that `SubwordVocabulary.save` wrote: name one that it did"
