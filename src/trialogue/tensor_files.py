"""Safetensors files of named tensors with metadata and a checksum, written atomically."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from trialogue.errors import InputError
from trialogue.storage import atomic_write


def write_tensors(
    path: str | PathLike[str], kind: str, tensors: dict[str, Tensor], metadata: Mapping[str, Any]
) -> Path:
    """Write tensors and metadata to a file.

    Args:
        path: The file.
        kind: Name and version of the format.
        tensors: Tensors by name.
        metadata: Metadata that can be written as JSON.

    Returns:
        The path.

    Raises:
        InputError: If the file cannot be written.
    """
    content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"kind": kind, "metadata": json.dumps(metadata), "digest": _digest(content)}
    return atomic_write(path, save(content, header))


def read_tensors(
    path: str | PathLike[str], kind: str | Sequence[str], hint: str
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and metadata from a file of `write_tensors`.

    Args:
        path: The file.
        kind: Accepted name or names of the format.
        hint: End of the error message, which states what to do.

    Returns:
        The tensors by name, and the metadata.

    Raises:
        InputError: If the file is missing, damaged or of another kind.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise InputError("path", str(path), "there is no such file") from error
    except (SafetensorError, OSError) as error:
        raise InputError("path", str(path), f"it is damaged or not a safetensors file: {hint}") from error
    if header.get("digest") != _digest(tensors):
        raise InputError("path", str(path), f"its content does not match its checksum: {hint}")
    kinds = (kind,) if isinstance(kind, str) else tuple(kind)
    if header.get("kind") not in kinds:
        raise InputError("path", str(path), f"it is not a file of kind {kinds[0]!r}: {hint}")
    return tensors, json.loads(header["metadata"])


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 checksum of tensors. Safetensors files have no checksum."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
