"""A corpus: a text, its tokenizer, and its tokens in rows of one length, to train on and for tests."""

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

from trialogue.arrays import whole_tensor
from trialogue.data.byte_level_bpe import checked_size
from trialogue.data.corpus.hub import HUB, hub_texts
from trialogue.data.corpus.texts import Text, local_text, split_text
from trialogue.data.corpus.tokens import (
    SPECIAL,
    mapped_rows,
    trained_tokenizer,
    write_tokens,
)
from trialogue.errors import InputError
from trialogue.storage import atomic_write, make_folder, user_folder
from trialogue.validation import Count, validated

_FORMAT = "trialogue corpus 1"
_RECORD, _TOKENIZER = "corpus.json", "tokenizer.json"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Packed sequences of a text: `train` and `test` (rows, length) int64, memory-mapped, and what their tokens mean.

    The tokens of all documents, `END` behind each, are one long sequence that is cut into rows, so that a row may begin
    anywhere in a sentence and cross the end of a document; what fills no row at the end is left out. `fingerprint`
    tells this text with this vocabulary from others, and `folder` is where its files are.
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
        """The corpus of `text`: a UTF-8 file, a folder of .txt files, or the name of one of the hub (`HUB`).

        The tokenizer is a byte-level BPE of `vocab_size` tokens, trained on the text to train on. Text for tests is
        that of `test`, a file or folder, else the hub's own split, else the last `test_share` of the text, from the
        beginning of a line. Files are made once, in a folder of `cache` (by default the user's) that the content of
        the text and the settings name; one that was killed goes on where it came to. `report` is told what is done.

        Raises `InputError` for a text that is missing, empty or not UTF-8, a vocabulary that has no room for 256 bytes
        and the special tokens or is larger than the text supports, and sequences that are longer than the text.
        """
        checked_size(vocab_size, SPECIAL, "vocab_size")
        parts = dict(zip(("train", "test"), _texts(text, test, test_share), strict=True))
        described = {
            "format": _FORMAT,
            "vocab_size": vocab_size,
            "texts": {part: content.identity for part, content in parts.items()},
        }
        fingerprint = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
        folder = (Path(cache) if cache is not None else user_folder("corpora")) / fingerprint
        if not (folder / _RECORD).exists():
            with FileLock(make_folder(folder) / ".lock"):
                tokenizer = _trained(folder, parts["train"], vocab_size, report)
                for part, content in parts.items():
                    said = partial(_reached, report, part)
                    write_tokens(content, tokenizer, folder / f"{part}.tokens", said)
                sizes = {part: (folder / f"{part}.tokens").stat().st_size for part in parts}
                record = {"text": str(text), **described, "bytes": sizes}
                atomic_write(folder / _RECORD, json.dumps(record, indent=1) + "\n")
        tokenizer = _kept(folder)
        rows = {part: mapped_rows(folder / f"{part}.tokens", length) for part in parts}
        for part, tokens in rows.items():
            if not len(tokens):
                hint = f"the text for {part} has fewer tokens: use shorter sequences, or a longer text"
                raise InputError("length", length, hint)
        return cls(str(text), tokenizer, rows["train"], rows["test"], fingerprint, folder)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return int(self.tokenizer.get_vocab_size())

    @property
    def length(self) -> int:
        """How many tokens a row has."""
        return self.train.shape[1]

    def decode(self, tokens: Tensor) -> list[str]:
        """The texts of `tokens` (rows, N); bytes that are no UTF-8 become the replacement character."""
        rows = whole_tensor("tokens", tokens, "give token ids (rows, N)").tolist()
        texts: list[str] = self.tokenizer.decode_batch(rows, skip_special_tokens=False)
        return texts


def _texts(
    text: str | PathLike[str], test: str | PathLike[str] | None, test_share: float
) -> tuple[Text, Text]:
    """What to train on, and what is for tests."""
    of_hub = str(text) in HUB and not Path(text).exists()
    if of_hub:
        train, own_test = hub_texts(str(text))
        return train, own_test if test is None else local_text(test)
    if not Path(text).exists():
        hint = f"there is no such file or folder, and no corpus of that name: those of the hub are {', '.join(HUB)}"
        raise InputError("text", str(text), hint)
    if test is not None:
        return local_text(text), local_text(test)
    return split_text(text, test_share)


def _trained(folder: Path, text: Text, vocab_size: int, report: Callable[[str], object]) -> Tokenizer:
    """The tokenizer that is kept in the folder, or one that is trained and then kept."""
    path = folder / _TOKENIZER
    if not path.exists():
        report(f"training a tokenizer of {vocab_size} tokens")
        atomic_write(path, trained_tokenizer(text, vocab_size).to_str())
    return Tokenizer.from_file(str(path))


def _kept(folder: Path) -> Tokenizer:
    """The tokenizer of a folder that is whole; raises `InputError` where something of it is gone or cut short."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        whole = all(
            (folder / f"{part}.tokens").stat().st_size == size for part, size in record["bytes"].items()
        )
        tokenizer = Tokenizer.from_str((folder / _TOKENIZER).read_text(encoding="utf-8"))
    # The library raises bare exceptions.
    except Exception as error:
        raise _damaged(folder) from error
    if not whole:
        raise _damaged(folder)
    return tokenizer


def _damaged(folder: Path) -> InputError:
    return InputError("cache", str(folder), "it is damaged: delete this folder, and it is made again")


def _reached(report: Callable[[str], object], part: str, position: int, size: int) -> None:
    report(f"tokens of the text for {part}: {position / size:.0%}")
