"""Folders of clones: sequences that preserve the interactions between tokens of a text up to some order.

An interaction of order k is a dependence between k tokens. A folder of clones contains `tokenizer.json`, one
safetensors file per clone, and `clones.json` with the metadata of all clones. `clones.json` is replaced atomically
after the file of a new clone is written.
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
"""Name of the clone that is the held-out text itself."""

_FORMAT = 1
_KIND = "trialogue clone 1"
_MANIFEST, _TOKENIZER = "clones.json", "tokenizer.json"
_RECREATE = "create the clones again in another folder"


@validated
@dataclass(frozen=True, kw_only=True, eq=False)
class Clone:
    """Sequences that preserve the interactions of a text up to some order, with a description of their origin.

    An interaction of order k is a dependence between k tokens. The sequences are samples of a network trained on the
    text, from a Markov chain that updates one token (site) at a time. The held-out text itself is stored in the same
    format.

    Args:
        name: Name of the clone and its file, with lower-case letters, digits and hyphens.
        tokens: Sequences (rows, length) int64.
        source: "text" for held-out text (default), otherwise the network that generated the sequences.
        layers: Number of layers of the network, if it has layers.
        max_order: Maximum order of the preserved interactions, or None for all orders.
        sampler: Markov chain that sampled the sequences, if any.
        gauge: Whether the energy of the chain was computed from "raw" or "normalised" logits, if it was computed from
            logits.
        bodies: Number by which the energy of the chain was divided, if it was computed from logits.
        sweeps: Number of updates of each site.
        acceptance: Fraction of the updates that changed the token.
        effective_sample_size: Effective sample size of the energies over the sweeps.
        r_hat: Convergence diagnostic R-hat of the energies over the sweeps.
        network_loss: Loss of the network on held-out text in nats per token.

    Raises:
        InputError: If a field is invalid.
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
        """Description of the preserved interactions."""
        return "all orders" if self.max_order is None else f"up to order {self.max_order}"


class Clones:
    """Folder that stores clones of a text, which share a tokenizer.

    A clone is a set of sequences that preserves the interactions of a text up to some order. Indexing by name loads and
    checks a clone. Iteration loads the clones in the order in which they were added.

    Args:
        folder: Folder of the clones.

    Attributes:
        length: Number of tokens of each sequence.
        vocab_size: Number of tokens of the vocabulary.

    Raises:
        InputError: If the folder contains no clones, `clones.json` is damaged, or the tokenizer does not match it.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        manifest = _manifest(self.folder)
        self.length, self.vocab_size = manifest["length"], manifest["vocab_size"]
        self._entries: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in manifest["clones"]}
        self._tokenizer_hash = manifest["tokenizer"]
        self._tokenizer_text = _read(self.folder / _TOKENIZER)
        if _sha256(self._tokenizer_text) != self._tokenizer_hash:
            hint = f"{_RECREATE}, because {_MANIFEST} was written with another tokenizer"
            raise InputError("tokenizer", str(self.folder / _TOKENIZER), hint)

    @classmethod
    @validated
    def create(
        cls, folder: str | PathLike[str], tokenizer: Tokenizer, *, length: Count, vocab_size: Count
    ) -> Clones:
        """Create a folder for clones, or open an existing one.

        Args:
            folder: Folder of the clones.
            tokenizer: Tokenizer of all clones.
            length: Number of tokens of each sequence.
            vocab_size: Number of tokens of the vocabulary.

        Returns:
            The clones in the folder, none if it is new.

        Raises:
            InputError: If the folder contains clones with another tokenizer, length or vocabulary size.
        """
        path, text = Path(folder), tokenizer.to_str()
        if (path / _MANIFEST).exists():
            existing = cls(path)
            for field, requested, stored in (
                ("tokenizer", _sha256(text), existing._tokenizer_hash),
                ("length", length, existing.length),
                ("vocab_size", vocab_size, existing.vocab_size),
            ):
                if requested != stored:
                    hint = f"give another folder, because the clones in {path} have {field} {stored}"
                    raise InputError(field, requested, hint)
            return existing
        atomic_write(path / _TOKENIZER, text)
        _write_manifest(path, length, vocab_size, _sha256(text), [])
        return cls(path)

    @property
    def identity(self) -> str:
        """SHA-256 hash of the tokenizer and the metadata of all clones, which changes if the folder changes."""
        return hashlib.sha256(
            json.dumps([self._tokenizer_hash, self._entries], sort_keys=True).encode()
        ).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clones in the order in which they were added."""
        return tuple(self._entries)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Tokenizer of all clones."""
        try:
            return Tokenizer.from_str(self._tokenizer_text)
        except Exception as error:  # The library raises plain `Exception` objects.
            path = str(self.folder / _TOKENIZER)
            raise InputError("tokenizer", path, f"{_RECREATE}, because the tokenizer is damaged") from error

    def add(self, clone: Clone) -> None:
        """Save a clone, and replace an existing clone with the same name.

        Args:
            clone: Clone whose sequences have the length and the vocabulary of this folder.

        Raises:
            InputError: If the length or a token of the sequences does not match the folder.
        """
        self._require_fit(clone.tokens, clone.name)
        metadata = {"tokenizer": self._tokenizer_hash}
        write_tensors(self._file(clone.name), _KIND, {"tokens": clone.tokens}, metadata)
        fields = {
            field.name: getattr(clone, field.name)
            for field in dataclasses.fields(clone)
            if field.name != "tokens"
        }
        self._entries[clone.name] = {**fields, "file": self._file(clone.name).name}
        entries = list(self._entries.values())
        _write_manifest(self.folder, self.length, self.vocab_size, self._tokenizer_hash, entries)

    def __getitem__(self, name: str) -> Clone:
        """Load the clone with this name.

        Raises:
            InputError: If there is no such clone, its file is damaged, or it has another tokenizer.
        """
        if name not in self._entries:
            available = ", ".join(self.names) or "none"
            raise InputError("clone", name, f"use one of the clones in {self.folder}: {available}")
        path = self._file(name)
        tensors, metadata = read_tensors(path, _KIND, _RECREATE)
        if metadata.get("tokenizer") != self._tokenizer_hash:
            hint = f"{_RECREATE}, because this clone has another tokenizer than {self.folder / _TOKENIZER}"
            raise InputError("clone", str(path), hint)
        fields = {key: value for key, value in self._entries[name].items() if key != "file"}
        try:
            clone = Clone(tokens=tensors["tokens"], **fields)
        except (TypeError, KeyError) as error:
            raise _damaged_error(self.folder) from error
        self._require_fit(clone.tokens, str(path))
        return clone

    def __iter__(self) -> Iterator[Clone]:
        """Load all clones one after the other, in the order in which they were added."""
        return (self[name] for name in self.names)

    def __len__(self) -> int:
        """Return the number of clones."""
        return len(self._entries)

    def decode(self, tokens: Tensor) -> list[str]:
        """Convert token ids to texts.

        Args:
            tokens: Token ids (rows, length).

        Returns:
            One text per row.
        """
        texts: list[str] = self.tokenizer.decode_batch(tokens.tolist(), skip_special_tokens=False)
        return texts

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def _require_fit(self, tokens: Tensor, value: str) -> None:
        if tokens.shape[1] != self.length or int(tokens.max()) >= self.vocab_size:
            hint = (
                f"{_RECREATE}, because sequences in {self.folder} have {self.length} tokens "
                f"below {self.vocab_size}"
            )
            raise InputError("clone", value, hint)


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
        hint = "give an existing folder, or create one with `trialogue clone`"
        raise InputError("clones", str(folder), hint)
    if not (folder / _MANIFEST).exists():
        hint = f"give a folder created by `trialogue clone`, because this one has no {_MANIFEST}"
        raise InputError("clones", str(folder), hint)
    try:
        manifest = json.loads(_read(folder / _MANIFEST))
        if manifest["format"] != _FORMAT:
            hint = f"{_RECREATE}, because {_MANIFEST} has format {manifest['format']!r} instead of {_FORMAT}"
            raise InputError("clones", str(folder), hint)
        counts = [type(manifest[key]) is int and manifest[key] > 0 for key in ("length", "vocab_size")]
        names = [entry["file"] == f"{entry['name']}.safetensors" for entry in manifest["clones"]]
        no_folders = all(Path(entry["file"]).name == entry["file"] for entry in manifest["clones"])
        if not (all(counts) and all(names) and no_folders and isinstance(manifest["tokenizer"], str)):
            raise _damaged_error(folder)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise _damaged_error(folder) from error
    return manifest


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("clones", str(path), f"{_RECREATE}, because the file cannot be read") from error


def _damaged_error(folder: Path) -> InputError:
    return InputError("clones", str(folder), f"{_RECREATE}, because {_MANIFEST} is damaged")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
