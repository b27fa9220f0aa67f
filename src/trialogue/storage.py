"""Writing files that are either whole or absent, one line for what keeps them from being written, sums, and folders.

A file appears under its name in one step, by `os.replace` of a finished temporary neighbour, so that a reader
never sees half of it, whatever kills the writer.
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

_MENDS = {
    errno.ENOSPC: "no space is left on the device: free some, or choose a folder elsewhere",
    errno.EDQUOT: "the disk quota is used up: free some space, or choose a folder elsewhere",
    errno.EACCES: "no permission to write here: choose a folder that you may write to",
    errno.EPERM: "no permission to write here: choose a folder that you may write to",
    errno.EROFS: "the file system is read-only: choose a folder that you may write to",
    errno.ENOTDIR: "a parent of this path is a file: choose another folder",
    errno.EEXIST: "a file is in the way of this folder: choose another folder",
    errno.EISDIR: "a folder is in the way of this file: choose another name",
    errno.ENAMETOOLONG: "the path is too long: choose a shorter one",
}


def require_folder(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` where the folder that a user's file `path` is to lie in is none, or is not there.

    A folder that a user names and has not made is more often a slip of the pen than a wish.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        in_the_way = any(parent.is_file() for parent in (folder, *folder.parents))
        missing = f"there is no folder {folder}: make it, or choose another"
        raise InputError("out", os.fspath(path), _MENDS[errno.EEXIST] if in_the_way else missing)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an `OSError` of the body into an `InputError` that names `path` and the hint."""
    try:
        yield
    except OSError as error:
        hint = _MENDS.get(error.errno or 0, f"cannot be written: {error.strerror or error}")
        raise InputError("path", os.fspath(path), hint) from error


def user_folder(part: str) -> Path:
    """Where this user's models, corpora and the like lie: a folder of `$TRIALOGUE_HOME`, else of the user's cache."""
    folder = os.environ.get("TRIALOGUE_HOME")
    if folder:
        return Path(folder).expanduser() / part
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "trialogue" / part


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make the folder `path` with its parents, where it is missing; raises `InputError` if it cannot."""
    folder = Path(path)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(path: str | os.PathLike[str], field: str, value: object, hint: str) -> Iterator[None]:
    """While the body runs, keep other processes out by the lock file `path`, whose folder is there.

    Raises `InputError` for `field` with `value` and `hint` where another one is at work already.
    """
    lock = FileLock(path, timeout=0)
    with writing(Path(path).parent):
        try:
            lock.acquire()
        except Timeout as error:
            raise InputError(field, value, hint) from error
    try:
        yield
    finally:
        lock.release()


def sha256_of(path: str | os.PathLike[str]) -> str:
    """The SHA-256 sum of a file, in hexadecimal digits; raises `OSError` where it cannot be read."""
    with Path(path).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def stored_object(path: Path, field: str, hint: str) -> dict[str, Any] | None:
    """Return the JSON object in the file `path`, None if there is no file.

    Raises:
        InputError: If the file holds anything else. The error names `field` and says `hint`.
    """
    if not path.exists():
        return None
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(field, str(path), hint) from error


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write `content` (text as UTF-8) to `path` in one step, replacing what is there; return the path.

    Parent folders are made. The content is on the disk when the call returns. Raises `InputError` where it
    cannot be written (no space, no permission, a file in the way); `path` is whole in any case, old or new.
    """
    data = content.encode() if isinstance(content, str) else content
    target = Path(path)
    make_folder(target.parent)
    temporary = target.parent / f".{uuid.uuid4().hex}.partial"
    with writing(target):
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        # The name itself is only safe once the folder is on the disk.
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return target
