"""Contexts broken on purpose: they lose what they should have kept."""

import torch

from samplers.stored_tree import EMPTY, StoredContext


class UncopiedContext(StoredContext):
    def copy(self, source, rows, start, stop):
        pass


class ShortCopyContext(StoredContext):
    """Leaves out the last position."""

    def copy(self, source, rows, start, stop):
        super().copy(source, rows, start, stop - 1)


class FreshForkContext(StoredContext):
    def fork(self, rows, stop):
        return type(self)(self.tree, torch.full((len(rows), stop + 1), EMPTY))


class SharedForkContext(StoredContext):
    """A fork that writes into the rows it was forked from."""

    def fork(self, rows, stop):
        return self
