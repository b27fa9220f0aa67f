"""Atomic writing of files, checksums, locks and folders.

A file is written under a temporary name and then renamed by `os.replace`, so a reader never sees an incomplete file.
"""

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from trialogue.errors import InputError

_HINTS = {
    errno.ENOSPC: "no space is left on the device; free some space, or choose a folder on another device",
    errno.EDQUOT: "the disk quota is used up; free some space, or choose a folder on another device",
    errno.EACCES: "permission denied; choose a folder that you may write to",
    errno.EPERM: "permission denied; choose a folder that you may write to",
    errno.EROFS: "the file system is read-only; choose a folder that you may write to",
    errno.ENOTDIR: "a parent of this path is a file; choose another folder",
    errno.EEXIST: "a file is in the way of this folder; choose another folder",
    errno.EISDIR: "a folder is in the way of this file; choose another name",
    errno.ENAMETOOLONG: "the path is too long; choose a shorter one",
}


def require_folder(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` unless the parent folder of `path` exists (a missing one is more often a typing error)."""
    folder = Path(path).parent
    if not folder.is_dir():
        in_the_way = any(parent.is_file() for parent in (folder, *folder.parents))
        missing = f"there is no folder {folder}; create it, or choose another"
        raise InputError("out", os.fspath(path), _HINTS[errno.EEXIST] if in_the_way else missing)


@contextmanager
def convert_write_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context manager that converts an `OSError` to an `InputError` about `path`, with a hint."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, f"cannot be written: {error.strerror or error}")
        raise InputError("path", os.fspath(path), hint) from error


def user_folder(part: str) -> Path:
    """Return the folder for the user's files of one kind, such as "models".

    It is a subfolder of `$TRIALOGUE_HOME` if this is set, and otherwise of `trialogue` in the user's cache folder.
    """
    folder = os.environ.get("TRIALOGUE_HOME")
    if folder:
        return Path(folder).expanduser() / part
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "trialogue" / part


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create the folder `path` and its parents if they do not exist. Raises `InputError` if this fails."""
    folder = Path(path)
    with convert_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def hold_lock(path: str | os.PathLike[str], field: str, value: object, hint: str) -> Iterator[None]:
    """Context manager that holds a lock file, so that no other process can hold it at the same time.

    Args:
        path: The lock file, in an existing folder.
        field: Name of the argument in the error.
        value: Value of the argument in the error.
        hint: Hint of the error.

    Raises:
        InputError: If another process holds the lock.
    """
    lock = FileLock(path, timeout=0)
    with convert_write_errors(Path(path).parent):
        try:
            lock.acquire()
        except Timeout as error:
            raise InputError(field, value, hint) from error
    try:
        yield
    finally:
        lock.release()


def compute_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 checksum of a file in hexadecimal. Raises `OSError` if it cannot be read."""
    with Path(path).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def read_json_object(path: Path, field: str, hint: str) -> dict[str, Any] | None:
    """Read a JSON object from a file, or return None if the file does not exist.

    Raises:
        InputError: If the file has other content. The error contains `field` and `hint`.
    """
    if not path.exists():
        return None
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(field, str(path), hint) from error


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write `content` to `path` atomically, replacing an existing file.

    Parent folders are created. The content is flushed to the disk before the function returns.

    Args:
        path: The file.
        content: Bytes, or text that is encoded as UTF-8.

    Returns:
        The path.

    Raises:
        InputError: If the file cannot be written. An existing file is then unchanged.
    """
    data = content.encode() if isinstance(content, str) else content
    target = Path(path)
    make_folder(target.parent)
    temporary = target.parent / f".{uuid.uuid4().hex}.partial"
    with convert_write_errors(target):
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        # The new name is only durable once the folder has been flushed to the disk.
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return target
