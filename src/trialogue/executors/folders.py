"""Folder for files that workers share with the calling process, if they have access to it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4
from weakref import finalize

from trialogue.storage import convert_write_errors


class SharedFolder:
    """A folder that workers use if they have access to it. Other workers use a temporary folder.

    A marker file distinguishes the folder from one with the same name on another machine. It exists only inside the
    context of `open`.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._marker = self.path / f".{uuid4().hex}.shared"
        self._temporary: Path | None = None

    @contextmanager
    def open(self) -> Iterator["SharedFolder"]:
        """Create the marker file by which workers recognize the folder, and delete it on exit.

        Yields:
            This object.
        """
        with convert_write_errors(self.path):
            self._marker.touch()
        try:
            yield self
        finally:
            self._marker.unlink(missing_ok=True)

    @property
    def shared(self) -> bool:
        """Whether this process can access the folder itself, which means that it finds the marker file."""
        return self._marker.exists()

    def of_worker(self) -> Path:
        """Return the folder that this process must use: the shared one if accessible, otherwise a temporary one.

        The temporary folder is created once and deleted together with this object.
        """
        if self.shared:
            return self.path
        if self._temporary is None:
            self._temporary = Path(mkdtemp(prefix="trialogue-"))
            self._delete = finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._temporary

    @contextmanager
    def beginning(self) -> Iterator[Path]:
        """Yield the folder that a worker uses while it starts, as a context manager.

        If an exception is raised, a temporary folder is deleted immediately. The exception may keep this
        object alive, and the worker may be killed before the object is deleted.
        """
        try:
            yield self.of_worker()
        except BaseException:
            if self._temporary is not None:
                self._delete()
                self._temporary = None
            raise
