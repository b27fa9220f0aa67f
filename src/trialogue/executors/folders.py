"""Folder that workers share with the calling process if they have access to it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4
from weakref import finalize

from trialogue.storage import writing


class SharedFolder:
    """A folder that workers use directly if they can access it, and replace by a temporary folder otherwise.

    A marker file, which exists only while the folder is open, distinguishes it from a folder of the same name
    on another machine.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._marker = self.path / f".{uuid4().hex}.shared"
        self._temporary: Path | None = None

    @contextmanager
    def open(self) -> Iterator["SharedFolder"]:
        """Create the marker file for the duration of the context, in which workers may use the folder."""
        with writing(self.path):
            self._marker.touch()
        try:
            yield self
        finally:
            self._marker.unlink(missing_ok=True)

    @property
    def shared(self) -> bool:
        """Whether this process can access the folder itself."""
        return self._marker.exists()

    def of_worker(self) -> Path:
        """Return the folder for a worker. A temporary folder is deleted together with this object."""
        if self.shared:
            return self.path
        if self._temporary is None:
            self._temporary = Path(mkdtemp(prefix="trialogue-"))
            self._delete = finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._temporary

    @contextmanager
    def beginning(self) -> Iterator[Path]:
        """Yield the folder for the start of a worker, and delete a temporary folder if an exception is raised.

        The exception may keep this object alive, and the worker may then be killed before its finalizer runs.
        """
        try:
            yield self.of_worker()
        except BaseException:
            if self._temporary is not None:
                self._delete()
                self._temporary = None
            raise
