"""Column of Python objects in the state of a sampler."""

from collections.abc import Hashable, Iterable, Sequence

from torch import Tensor


class ObjectColumn:
    """A column of Python objects, one per row, for sampler states that cannot be stored as tensors.

    The objects must be immutable and hashable. Equal objects must have the same effect on the sampler.

    Args:
        items: One object for each row.
    """

    def __init__(self, items: Iterable[Hashable]) -> None:
        self.items: tuple[Hashable, ...] = tuple(items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, rows: Tensor | slice) -> "ObjectColumn":
        """Select the objects of `rows`, which are indices (n,) int64 or a slice."""
        if isinstance(rows, slice):
            return ObjectColumn(self.items[rows])
        return ObjectColumn(self.items[row] for row in rows.tolist())

    @staticmethod
    def joined(columns: Sequence["ObjectColumn"]) -> "ObjectColumn":
        """Concatenate columns along the rows."""
        return ObjectColumn(item for column in columns for item in column.items)
