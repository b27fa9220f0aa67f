"""Files are written atomically: after an interruption they contain the old or the new content."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.storage import atomic_write, make_folder

Write = Callable[[Path, bytes], object]


def survives_a_full_disk(write: Write, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether a full disk during `write` leaves the old content, no other file, and one clear error."""
    target = folder / "file"
    write(target, b"old")

    def raise_disk_full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", raise_disk_full)
        try:
            write(target, b"new")
        except InputError as error:
            is_reported = str(target) in str(error) and "no space" in str(error)
        except OSError:
            is_reported = False
        else:
            is_reported = False
    return is_reported and target.read_bytes() == b"old" and list(folder.iterdir()) == [target]


def write_and_leave_the_neighbour(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".partial")
    with temporary.open("wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    temporary.replace(path)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    assert survives_a_full_disk(atomic_write, tmp_path, monkeypatch)


def test_the_check_rejects_a_mutant(tmp_path, monkeypatch):
    assert not survives_a_full_disk(write_and_leave_the_neighbour, tmp_path, monkeypatch)


def test_text_is_written_as_utf8_and_parent_folders_are_created(tmp_path):
    path = atomic_write(tmp_path / "a" / "b", "≤ 1\n")
    assert path.read_bytes() == "≤ 1\n".encode()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_operating_system_errors_are_reported_in_one_line(number, tmp_path, monkeypatch):
    def refuse(*arguments: object, **settings: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    expect_error(r"^path=", make_folder, tmp_path / "new")


def test_an_existing_file_or_folder_at_the_path_is_reported(tmp_path):
    atomic_write(tmp_path / "file", "")
    for path in (tmp_path / "file" / "below", tmp_path / "file" / "further" / "below"):
        expect_error("choose another folder", atomic_write, path, "")
    expect_error("choose another name", atomic_write, tmp_path, "")
