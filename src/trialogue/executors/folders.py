"""A folder that workers share with the process that hires them, where they can."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4
from weakref import finalize

from trialogue.storage import writing


class SharedFolder:
    """The folder `path` as a worker has it: itself where the worker sees that disk, else one of its own, for a time.

    A folder of the same name on another machine is told apart by a file that is there only while `open`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._mark = self.path / f".{uuid4().hex}.shared"
        self._own: Path | None = None

    @contextmanager
    def open(self) -> Iterator["SharedFolder"]:
        """While the body runs, workers may ask for the folder."""
        with writing(self.path):
            self._mark.touch()
        try:
            yield self
        finally:
            self._mark.unlink(missing_ok=True)

    @property
    def shared(self) -> bool:
        """Whether this process sees the folder itself."""
        return self._mark.exists()

    def of_worker(self) -> Path:
        """The folder to work in, in a worker; one of its own is deleted with this object."""
        if self.shared:
            return self.path
        if self._own is None:
            self._own = Path(mkdtemp(prefix="trialogue-"))
            self._delete = finalize(self, shutil.rmtree, self._own, ignore_errors=True)
        return self._own

    @contextmanager
    def beginning(self) -> Iterator[Path]:
        """`of_worker` for what a worker begins with; where that raises, one of its own is deleted at once.

        What raised keeps this object alive, and a worker that could not begin is ended without being asked.
        """
        try:
            yield self.of_worker()
        except BaseException:
            if self._own is not None:
                self._delete()
                self._own = None
            raise
