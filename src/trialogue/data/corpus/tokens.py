"""Byte-level BPE tokenizers and resumable tokenization of a text to a file."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from trialogue.data.byte_level_bpe import train_byte_level_bpe
from trialogue.data.corpus.texts import END, Text
from trialogue.storage import atomic_write, convert_write_errors

SPECIAL = (END,)
"""Special tokens. Their ids are 0, 1, ..."""
_BATCH_CHARACTERS = 2**22

Report = Callable[[int, int], object]
"""Progress callback. The arguments are the current position in the text and the last position, its size."""


def train_tokenizer(text: Text, vocab_size: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer on a text. See `train_byte_level_bpe`.

    The end-of-document marker `END` is its only special token.

    Args:
        text: Training text.
        vocab_size: Number of tokens.
    """
    lines = ("".join(piece for piece in pieces if piece != END) for _, pieces in text.pieces())
    return train_byte_level_bpe(lines, vocab_size, SPECIAL, prefix_space=False, field="vocab_size")


def write_tokens(text: Text, tokenizer: Tokenizer, path: Path, report: Report = lambda *_: None) -> None:
    """Write the tokens of a text to a file as int64, unless the file exists.

    An interrupted call can be repeated, and it continues where it stopped. The file is renamed to `path` when it is
    complete.

    Args:
        text: Text to tokenize.
        tokenizer: Tokenizer.
        path: Output file.
        report: Progress callback.

    Raises:
        InputError: If the file cannot be written.
    """
    if path.exists():
        return
    growing, reached = path.with_suffix(".growing"), path.with_suffix(".reached")
    position, written = _load_progress(reached, growing)
    with convert_write_errors(growing), growing.open("r+b" if written else "wb") as file:
        file.truncate(written)
        file.seek(written)
        for end, pieces in _batches(text, position):
            for encoded in tokenizer.encode_batch_fast(pieces):
                file.write(np.asarray(encoded.ids, np.int64).tobytes())
            file.flush()
            os.fsync(file.fileno())
            atomic_write(reached, json.dumps({"position": end, "bytes": file.tell()}))
            report(end, text.size)
    with convert_write_errors(path):
        growing.replace(path)
        reached.unlink(missing_ok=True)


def map_token_rows(path: Path, length: int) -> Tensor:
    """Memory-map the tokens of a file as rows of equal length.

    Args:
        path: File of int64 tokens, written by `write_tokens`.
        length: Number of tokens of a row.

    Returns:
        Tokens (n, length) int64. An incomplete last row is dropped.
    """
    rows = path.stat().st_size // np.dtype(np.int64).itemsize // length
    if not rows:
        return torch.empty(0, length, dtype=torch.int64)
    tokens = torch.from_file(str(path), shared=False, size=rows * length, dtype=torch.int64)
    return tokens.view(rows, length)


def _load_progress(record: Path, growing: Path) -> tuple[int, int]:
    """Return the position in the text and the number of bytes of the last complete batch."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        progress: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        position, written = int(progress["position"]), int(progress["bytes"])
        if growing.stat().st_size >= written:
            return position, written
    return 0, 0


def _batches(text: Text, start: int) -> Iterator[tuple[int, list[str]]]:
    """Generate batches of the pieces from `start`, each with the position after it."""
    batch: list[str] = []
    end = start
    characters = 0
    for end, pieces in text.pieces(start):
        batch += pieces
        characters += sum(map(len, pieces))
        if characters >= _BATCH_CHARACTERS:
            yield end, batch
            batch, characters = [], 0
    if batch:
        yield end, batch
