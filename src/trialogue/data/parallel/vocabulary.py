"""Joint subword vocabulary of both languages of a parallel text."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from trialogue.data.byte_level_bpe import train_byte_level_bpe
from trialogue.errors import InputError, require_text
from trialogue.storage import atomic_write

PAD, EOS, MASK, BOS = range(4)
SPECIAL = ("<pad>", "</s>", "<mask>", "<s>")
"""Special tokens by id."""


class SubwordVocabulary:
    """Byte-level BPE vocabulary (Sennrich et al. 2016) of both languages of a parallel text.

    The special tokens for padding, end of sequence, mask and start of sequence have the ids 0 to 3. A space is
    added before each text and removed by `decode`, so a word has the same token at the start of a sentence and
    inside it. Every text that does not start with a space is therefore decoded exactly. If a text contains the
    name of a special token, it is encoded as ordinary text.

    Args:
        tokenizer: Tokenizer with the special tokens.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        tokenizer.encode_special_tokens = True

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    @property
    def identity(self) -> str:
        """SHA-256 hash of the vocabulary."""
        return hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()

    @classmethod
    def train(cls, texts: Iterable[str], size: int, field: str = "size") -> "SubwordVocabulary":
        """Train a vocabulary on sentences.

        Args:
            texts: Sentences of both languages.
            size: Number of tokens, including the special tokens.
            field: Name of `size` for error messages.

        Raises:
            InputError: If `size` is too small for 256 bytes and the special tokens, or too large for the texts.
        """
        return cls(train_byte_level_bpe(texts, size, SPECIAL, prefix_space=True, field=field))

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Convert texts to token ids, without special tokens.

        Args:
            texts: Texts of any length.

        Returns:
            One list of token ids per text. It is empty for an empty text.
        """
        for text in texts:
            require_text("texts", text)
        return [encoded.ids for encoded in self._tokenizer.encode_batch_fast(texts)]

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Convert token ids to texts.

        A row ends at its first end-of-sequence token. Other special tokens are skipped. Invalid UTF-8 becomes the
        replacement character U+FFFD.

        Args:
            rows: Token ids of each row.

        Returns:
            One text per row.

        Raises:
            InputError: If a token is not in the vocabulary.
        """
        size = len(self)
        texts = []
        for row in rows:
            wrong = next((token for token in row if not 0 <= token < size), None)
            if wrong is not None:
                hint = f"use tokens below {size}, the size of the vocabulary"
                raise InputError("rows", wrong, hint)
            end = row.index(EOS) if EOS in row else len(row)
            ordinary = [token for token in row[:end] if token >= len(SPECIAL)]
            texts.append(self._tokenizer.decode(ordinary, skip_special_tokens=False).removeprefix(" "))
        return texts

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the vocabulary to a file atomically.

        Args:
            path: Output file.

        Returns:
            Path of the file.
        """
        return atomic_write(path, self._tokenizer.to_str())

    @classmethod
    def open(cls, path: str | os.PathLike[str], identity: str | None = None) -> "SubwordVocabulary":
        """Load a vocabulary from a file.

        Args:
            path: File written by `save`.
            identity: Required hash, for example of the vocabulary of a trained model (default: any).

        Raises:
            InputError: If the file cannot be read, is not a saved vocabulary, or has another hash.
        """
        try:
            tokenizer = Tokenizer.from_str(Path(path).read_bytes().decode())
        except OSError as error:
            hint = f"check that the file can be read ({error.strerror or error})"
            raise InputError("vocabulary", os.fspath(path), hint) from error
        except Exception as error:  # The library raises plain `Exception` objects.
            raise InputError("vocabulary", os.fspath(path), _NOT_A_VOCABULARY) from error
        if [tokenizer.id_to_token(token) for token in range(len(SPECIAL))] != list(SPECIAL):
            raise InputError("vocabulary", os.fspath(path), _NOT_A_VOCABULARY)
        vocabulary = cls(tokenizer)
        if identity is not None and vocabulary.identity != identity:
            hint = "use the vocabulary of the model, because this is the vocabulary of another model"
            raise InputError("vocabulary", os.fspath(path), hint)
        return vocabulary


_NOT_A_VOCABULARY = "give a file written by `SubwordVocabulary.save`"
