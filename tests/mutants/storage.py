"""Faulty contexts that lose stored positions."""

from samplers.stateful_tree import StoredContext


class UncopiedContext(StoredContext):
    def copy(self, source, rows, start, stop):
        pass


class SharedForkContext(StoredContext):
    """Write a fork into the rows of its source."""

    def fork(self, rows, stop):
        return self
