"""Faulty contexts that lose stored positions."""

import torch

from samplers.stateful_tree import EMPTY, StoredContext


class UncopiedContext(StoredContext):
    def copy(self, source, rows, start, stop):
        pass


class ShortCopyContext(StoredContext):
    """Omit the last position."""

    def copy(self, source, rows, start, stop):
        super().copy(source, rows, start, stop - 1)


class FreshForkContext(StoredContext):
    def fork(self, rows, stop):
        return type(self)(self.tree, torch.full((len(rows), stop + 1), EMPTY))


class SharedForkContext(StoredContext):
    """Write a fork into the rows of its source."""

    def fork(self, rows, stop):
        return self
