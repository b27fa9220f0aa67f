"""Clones of a corpus on disk: sequences that keep interactions up to some order, and the text that they are clones of.

A folder of clones has `tokenizer.json`, the tokenizer that all of its tokens are of; one safetensors file for each
clone; and `clones.json`, which says what every clone keeps and how it was drawn. A clone is there once `clones.json`
names it, which is written last, in one step:

    clones = Clones("out")
    for clone in clones:
        print(clone.name, clone.max_order, clones.decode(clone.tokens[:1]))
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from tokenizers import Tokenizer
from torch import Tensor

from trialogue.arrays import Integers
from trialogue.errors import InputError
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.validation import Count, Natural, NonNegative, Positive, Share, validated

TEXT = "text"
"""The name of the held-out text itself among its clones."""

_FORMAT = 1
_KIND = "trialogue clone 1"
_MANIFEST, _TOKENIZER = "clones.json", "tokenizer.json"
_AGAIN = "make the clones again, in another folder"


@validated
@dataclass(frozen=True, kw_only=True, eq=False)
class Clone:
    """Sequences, and what they are: all that `clones.json` says of a clone. Raises `InputError` for a wrong field.

    `tokens` (rows, length) int64. `name` is that of its file: lower-case letters, digits and hyphens. `source` names
    what made it, "text" for held-out text as it is, else a network, of `layers` layers where it has some. It keeps
    interactions of at most `max_order` bodies, None for all orders. `sampler` is the chain that it was drawn by, None
    for what no chain drew, `gauge` that of the logits and `bodies` the number that they were divided by where it asked
    for scores, `sweeps` how many updates of each site each sequence had. `acceptance` is the share of updates that
    changed their token; `effective_sample_size` and `r_hat` are of the energies of the sequences over the sweeps.
    `network_loss` is that of the network on held-out text, in nats per token.
    """

    name: str
    tokens: Annotated[Tensor, Integers("rows length", least=0)]
    source: str = TEXT
    layers: Count | None = None
    max_order: Count | None = None
    sampler: str | None = None
    gauge: str | None = None
    bodies: Positive | None = None
    sweeps: Natural | None = None
    acceptance: Share | None = None
    effective_sample_size: NonNegative | None = None
    r_hat: Positive | None = None
    network_loss: NonNegative | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise InputError(
                "name", self.name, "use lower-case letters and digits, with hyphens between them"
            )

    @property
    def keeps(self) -> str:
        """What interactions it keeps, in words."""
        return "all orders" if self.max_order is None else f"up to order {self.max_order}"


class Clones:
    """The clones in a `folder`, in the order in which they were added; each is read and checked when it is asked for.

    Raises `InputError` where there are none, or `clones.json` or the tokenizer are damaged or do not belong together.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        manifest = _manifest(self.folder)
        self.length, self.vocab_size = manifest["length"], manifest["vocab_size"]
        self._entries: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in manifest["clones"]}
        self._sum = manifest["tokenizer"]
        self._tokenizer_text = _read(self.folder / _TOKENIZER)
        if _sum_of(self._tokenizer_text) != self._sum:
            hint = f"{_MANIFEST} beside it was written with another tokenizer: {_AGAIN}"
            raise InputError("tokenizer", str(self.folder / _TOKENIZER), hint)

    @classmethod
    @validated
    def create(
        cls, folder: str | PathLike[str], tokenizer: Tokenizer, *, length: Count, vocab_size: Count
    ) -> Clones:
        """Begin a folder for clones of `length` tokens of `tokenizer`; one that is there already goes on.

        Raises `InputError` where the folder has clones of another tokenizer, length or vocabulary.
        """
        path, text = Path(folder), tokenizer.to_str()
        if (path / _MANIFEST).exists():
            found = cls(path)
            for field, wanted, there in (
                ("tokenizer", _sum_of(text), found._sum),
                ("length", length, found.length),
                ("vocab_size", vocab_size, found.vocab_size),
            ):
                if wanted != there:
                    hint = f"the clones in {path} were made with {field} {there}: give another folder"
                    raise InputError(field, wanted, hint)
            return found
        atomic_write(path / _TOKENIZER, text)
        _write_manifest(path, length, vocab_size, _sum_of(text), [])
        return cls(path)

    @property
    def identity(self) -> str:
        """What tells these clones from others: the sha256 sum of what is said of them all."""
        return hashlib.sha256(json.dumps([self._sum, self._entries], sort_keys=True).encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clones that are there."""
        return tuple(self._entries)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the tokens of all clones are of."""

        try:
            return Tokenizer.from_str(self._tokenizer_text)
        except Exception as error:  # the library raises bare exceptions
            path = str(self.folder / _TOKENIZER)
            raise InputError("tokenizer", path, f"it is no tokenizer: {_AGAIN}") from error

    def add(self, clone: Clone) -> None:
        """Keep a clone, in place of one of its name; raises `InputError` where its tokens do not fit the others."""
        self._require_fit(clone.tokens, clone.name)
        metadata = {"tokenizer": self._sum}
        write_tensors(self._file(clone.name), _KIND, {"tokens": clone.tokens}, metadata)
        said = {
            field.name: getattr(clone, field.name)
            for field in dataclasses.fields(clone)
            if field.name != "tokens"
        }
        self._entries[clone.name] = {**said, "file": self._file(clone.name).name}
        entries = list(self._entries.values())
        _write_manifest(self.folder, self.length, self.vocab_size, self._sum, entries)

    def __getitem__(self, name: str) -> Clone:
        """The clone of that name; raises `InputError` where there is none, or its file is damaged or not of these."""
        if name not in self._entries:
            raise InputError("clone", name, f"{self.folder} has {', '.join(self.names) or 'none'}")
        path = self._file(name)
        tensors, metadata = read_tensors(path, _KIND, _AGAIN)
        if metadata.get("tokenizer") != self._sum:
            hint = f"it is a clone made with another tokenizer than {self.folder / _TOKENIZER}: {_AGAIN}"
            raise InputError("clone", str(path), hint)
        said = {key: value for key, value in self._entries[name].items() if key != "file"}
        try:
            clone = Clone(tokens=tensors["tokens"], **said)
        except (TypeError, KeyError) as error:
            raise _damaged(self.folder) from error
        self._require_fit(clone.tokens, str(path))
        return clone

    def __iter__(self) -> Iterator[Clone]:
        """Every clone, in order."""
        return (self[name] for name in self.names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._entries)

    def decode(self, tokens: Tensor) -> list[str]:
        """The texts of `tokens` (rows, length)."""
        texts: list[str] = self.tokenizer.decode_batch(tokens.tolist(), skip_special_tokens=False)
        return texts

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def _require_fit(self, tokens: Tensor, shown: str) -> None:
        if tokens.shape[1] != self.length or int(tokens.max()) >= self.vocab_size:
            hint = (
                f"clones in {self.folder} have {self.length} tokens each, below {self.vocab_size}: {_AGAIN}"
            )
            raise InputError("clone", shown, hint)


def _write_manifest(
    folder: Path, length: int, vocab_size: int, tokenizer: str, entries: list[dict[str, Any]]
) -> None:
    manifest = {
        "format": _FORMAT,
        "length": length,
        "vocab_size": vocab_size,
        "tokenizer": tokenizer,
        "clones": entries,
    }
    atomic_write(folder / _MANIFEST, json.dumps(manifest, indent=1, allow_nan=False) + "\n")


def _manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InputError("clones", str(folder), "there is no such folder: make one with `trialogue clone`")
    if not (folder / _MANIFEST).exists():
        hint = f"it has no {_MANIFEST}: give a folder that `trialogue clone` made"
        raise InputError("clones", str(folder), hint)
    try:
        manifest = json.loads(_read(folder / _MANIFEST))
        if manifest["format"] != _FORMAT:
            hint = f"{_MANIFEST} has format {manifest['format']!r}, this version reads {_FORMAT}: {_AGAIN}"
            raise InputError("clones", str(folder), hint)
        whole = [type(manifest[key]) is int and manifest[key] > 0 for key in ("length", "vocab_size")]
        files = [entry["file"] == f"{entry['name']}.safetensors" for entry in manifest["clones"]]
        plain = all(Path(entry["file"]).name == entry["file"] for entry in manifest["clones"])
        if not (all(whole) and all(files) and plain and isinstance(manifest["tokenizer"], str)):
            raise _damaged(folder)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(folder) from error
    return manifest


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("clones", str(path), f"it cannot be read: {_AGAIN}") from error


def _damaged(folder: Path) -> InputError:
    return InputError("clones", str(folder), f"its {_MANIFEST} is damaged: {_AGAIN}")


def _sum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
