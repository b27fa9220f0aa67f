"""Tokenized corpora with a training set and a test set of sequences of equal length."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from filelock import FileLock
from tokenizers import Tokenizer
from torch import Tensor

from trialogue.arrays import integer_tensor
from trialogue.data.byte_level_bpe import require_bpe_size
from trialogue.data.corpus.hub import HUB, load_hub_texts
from trialogue.data.corpus.texts import Text, open_local_text, split_local_text
from trialogue.data.corpus.tokens import (
    SPECIAL,
    map_token_rows,
    train_tokenizer,
    write_tokens,
)
from trialogue.errors import InputError
from trialogue.storage import atomic_write, make_folder, user_folder
from trialogue.validation import Count, validated

_FORMAT = "trialogue corpus 1"
_RECORD, _TOKENIZER = "corpus.json", "tokenizer.json"


@dataclass(frozen=True, eq=False)
class Corpus:
    """A tokenized text, cut into training and test sequences of equal length.

    Create instances with `Corpus.open`. The tokens of all documents, each followed by the end-of-document marker
    `<|endoftext|>`, are concatenated and cut into rows of equal length. A row can start in the middle of a sentence and
    contain the end of a document. An incomplete last row is dropped.

    Args:
        text: Path or name of the text.
        tokenizer: Tokenizer of the text.
        train: Training sequences (rows, length) int64, memory-mapped.
        test: Test sequences (rows, length) int64, memory-mapped.
        fingerprint: Hash of the text and the vocabulary size.
        folder: Folder of the cached files.
    """

    text: str
    tokenizer: Tokenizer
    train: Tensor
    test: Tensor
    fingerprint: str
    folder: Path

    @classmethod
    @validated
    def open(
        cls,
        text: str | PathLike[str],
        *,
        vocab_size: int = 320,
        length: Count = 16,
        test: str | PathLike[str] | None = None,
        test_share: float = 0.1,
        cache: str | PathLike[str] | None = None,
        report: Callable[[str], object] = lambda _: None,
    ) -> "Corpus":
        """Open the corpus of a text, and tokenize the text if it is not in the cache.

        The tokenizer is a byte-level BPE trained on the training text. An interrupted call can be repeated, and it
        continues where it stopped.

        Args:
            text: UTF-8 file, folder of .txt files, or name of a corpus in `HUB`.
            vocab_size: Number of tokens of the tokenizer.
            length: Number of tokens of a row.
            test: File or folder of the test text (default: the test split of a hub corpus, otherwise the end of
                `text`).
            test_share: Fraction of `text` used for testing if there is no other test text.
            cache: Folder of the cached files (default: the user's cache folder).
            report: Function called with progress messages.

        Raises:
            InputError: If a text is missing, empty or not UTF-8, or has fewer than `length` tokens. Also if
                `vocab_size` is too small for 256 bytes and the special tokens, or too large for the text.
        """
        require_bpe_size(vocab_size, SPECIAL, "vocab_size")
        parts = dict(zip(("train", "test"), _texts(text, test, test_share), strict=True))
        description = {
            "format": _FORMAT,
            "vocab_size": vocab_size,
            "texts": {part: content.identity for part, content in parts.items()},
        }
        fingerprint = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]
        folder = (Path(cache) if cache is not None else user_folder("corpora")) / fingerprint
        if not (folder / _RECORD).exists():
            with FileLock(make_folder(folder) / ".lock"):
                tokenizer = _load_or_train_tokenizer(folder, parts["train"], vocab_size, report)
                for part, content in parts.items():
                    report_progress = partial(_report_progress, report, part)
                    write_tokens(content, tokenizer, folder / f"{part}.tokens", report_progress)
                sizes = {part: (folder / f"{part}.tokens").stat().st_size for part in parts}
                record = {"text": str(text), **description, "bytes": sizes}
                atomic_write(folder / _RECORD, json.dumps(record, indent=1) + "\n")
        tokenizer = _load_checked_tokenizer(folder)
        rows = {part: map_token_rows(folder / f"{part}.tokens", length) for part in parts}
        for part, tokens in rows.items():
            if not len(tokens):
                hint = f"use shorter sequences or a longer text, because the {part} text has fewer tokens"
                raise InputError("length", length, hint)
        return cls(str(text), tokenizer, rows["train"], rows["test"], fingerprint, folder)

    @property
    def vocab_size(self) -> int:
        """Number of tokens of the vocabulary."""
        return int(self.tokenizer.get_vocab_size())

    @property
    def length(self) -> int:
        """Number of tokens of a row."""
        return self.train.shape[1]

    def decode(self, tokens: Tensor) -> list[str]:
        """Convert token ids to texts.

        Args:
            tokens: Token ids (rows, N).

        Returns:
            One text per row. Invalid UTF-8 becomes the replacement character.
        """
        rows = integer_tensor("tokens", tokens, "give token ids (rows, N)").tolist()
        texts: list[str] = self.tokenizer.decode_batch(rows, skip_special_tokens=False)
        return texts


def _texts(
    text: str | PathLike[str], test: str | PathLike[str] | None, test_share: float
) -> tuple[Text, Text]:
    """Return the training text and the test text."""
    if str(text) in HUB and not Path(text).exists():
        train, test_split = load_hub_texts(str(text))
        return train, test_split if test is None else open_local_text(test)
    if not Path(text).exists():
        hint = f"give an existing file or folder, or the name of a corpus on the hub: {', '.join(HUB)}"
        raise InputError("text", str(text), hint)
    if test is not None:
        return open_local_text(text), open_local_text(test)
    return split_local_text(text, test_share)


def _load_or_train_tokenizer(
    folder: Path, text: Text, vocab_size: int, report: Callable[[str], object]
) -> Tokenizer:
    """Load the tokenizer from the folder, or train and save it."""
    path = folder / _TOKENIZER
    if not path.exists():
        report(f"training a tokenizer of {vocab_size} tokens")
        atomic_write(path, train_tokenizer(text, vocab_size).to_str())
    return Tokenizer.from_file(str(path))


def _load_checked_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer after a check that all files of the folder exist and have the recorded sizes."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        is_intact = all(
            (folder / f"{part}.tokens").stat().st_size == size for part, size in record["bytes"].items()
        )
        tokenizer = Tokenizer.from_str((folder / _TOKENIZER).read_text(encoding="utf-8"))
    # The library raises plain `Exception` objects.
    except Exception as error:
        raise _damaged_cache_error(folder) from error
    if not is_intact:
        raise _damaged_cache_error(folder)
    return tokenizer


def _damaged_cache_error(folder: Path) -> InputError:
    return InputError("cache", str(folder), "delete this damaged folder, and it will be created again")


def _report_progress(report: Callable[[str], object], part: str, position: int, size: int) -> None:
    report(f"tokenizing the {part} text: {position / size:.0%}")
