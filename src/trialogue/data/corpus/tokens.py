"""From a text to a file of tokens: a byte-level BPE, and a file that grows so that a kill loses nothing of it."""

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

from trialogue.data.byte_level_bpe import trained_byte_level_bpe
from trialogue.data.corpus.texts import END, Text
from trialogue.storage import atomic_write, writing

SPECIAL = (END,)
"""The tokens of a vocabulary that no bytes stand for, from 0 on."""
_CHARACTERS_AT_ONCE = 2**22

Report = Callable[[int, int], object]
"""Told how far a text has been read: the position, and the last one."""


def trained_tokenizer(text: Text, vocab_size: int) -> Tokenizer:
    """The byte-level BPE of `vocab_size` tokens that is trained on `text` (see `trained_byte_level_bpe`)."""
    lines = ("".join(piece for piece in pieces if piece != END) for _, pieces in text.pieces())
    return trained_byte_level_bpe(lines, vocab_size, SPECIAL, prefix_space=False, field="vocab_size")


def write_tokens(text: Text, tokenizer: Tokenizer, path: Path, report: Report = lambda *_: None) -> None:
    """Write the tokens of `text` to `path`, int64 one after another; goes on where one that was killed came to.

    The file appears under its name when it is whole, and is then left as it is. Raises `InputError` where it cannot be
    written.
    """
    if path.exists():
        return
    growing, reached = path.with_suffix(".growing"), path.with_suffix(".reached")
    position, written = _reached(reached, growing)
    with writing(growing), growing.open("r+b" if written else "wb") as file:
        file.truncate(written)
        file.seek(written)
        for place, pieces in _at_once(text, position):
            for encoded in tokenizer.encode_batch_fast(pieces):
                file.write(np.asarray(encoded.ids, np.int64).tobytes())
            file.flush()
            os.fsync(file.fileno())
            atomic_write(reached, json.dumps({"position": place, "bytes": file.tell()}))
            report(place, text.size)
    with writing(path):
        growing.replace(path)
        reached.unlink(missing_ok=True)


def mapped_rows(path: Path, length: int) -> Tensor:
    """The tokens in the file `path` as rows (n, length) int64 without copying them; what fills no row is left out."""
    rows = path.stat().st_size // np.dtype(np.int64).itemsize // length
    if not rows:
        return torch.empty(0, length, dtype=torch.int64)
    tokens = torch.from_file(str(path), shared=False, size=rows * length, dtype=torch.int64)
    return tokens.view(rows, length)


def _reached(record: Path, growing: Path) -> tuple[int, int]:
    """The position of the text and the bytes of the file that are safe."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        told: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        position, written = int(told["position"]), int(told["bytes"])
        if growing.stat().st_size >= written:
            return position, written
    return 0, 0


def _at_once(text: Text, start: int) -> Iterator[tuple[int, list[str]]]:
    """Pieces from `start` on, as many as make a batch, each batch with the position behind it."""
    batch: list[str] = []
    place = start
    waiting = 0
    for place, pieces in text.pieces(start):
        batch += pieces
        waiting += sum(map(len, pieces))
        if waiting >= _CHARACTERS_AT_ONCE:
            yield place, batch
            batch, waiting = [], 0
    if batch:
        yield place, batch
