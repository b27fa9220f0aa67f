"""The measurements of a run, grouped by kind."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from pandas import DataFrame


class NoRows(LookupError):
    """Error raised if measurements that a statistic needs are missing."""


class Rows(Mapping[str, DataFrame]):
    """The measurements of a run: a mapping from each kind of measurement to a DataFrame.

    Each DataFrame has only the columns of its kind. A kind that was not measured raises `NoRows`.

    Args:
        records: The measurements, one dict each.
        kind: Column that holds the kind of a measurement (default: "kind").
        config: Config values of the run (default: empty).
    """

    def __init__(
        self,
        records: Sequence[Mapping[str, Any]],
        kind: str = "kind",
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.records, self.config = records, config or {}
        by_kind = defaultdict(list)
        for record in records:
            by_kind[str(record.get(kind, ""))].append(record)
        self._by_kind = dict(by_kind)
        self._frames: dict[str, DataFrame] = {}
        # Values of statistics by their function. A verdict reads the value of a statistic several times.
        self.computed: dict[object, Any] = {}

    def __getitem__(self, kind: str) -> DataFrame:
        if kind not in self._by_kind:
            raise NoRows(f"no rows of the kind {kind!r}")
        if kind not in self._frames:
            self._frames[kind] = DataFrame(self._by_kind[kind])
        # With a shallow copy, a statistic can add columns without changing the rows of other statistics.
        return self._frames[kind].copy(deep=False)

    @cached_property
    def seeds(self) -> frozenset[Any]:
        """The values of the column "seed"."""
        return frozenset(record.get("seed") for record in self.records)

    def where(self, kind: str, /, **values: object) -> DataFrame:
        """Return the measurements of a kind whose columns have the given values.

        Args:
            kind: The kind of measurement.
            **values: The required value of each named column.

        Raises:
            NoRows: The kind was not measured.

        Example:
            `rows.where("training", data="unseen")`
        """
        table = self[kind]
        # One selection copies the columns once.
        masks = [table[column] == value for column, value in values.items()]
        return table[np.logical_and.reduce(masks)] if masks else table

    def require(self, kind: str, /, **values: object) -> DataFrame:
        """Return the rows that `where` selects, of which there must be at least one.

        Args:
            kind: The kind of measurement.
            **values: Value of each column that selects rows.

        Raises:
            NoRows: No row was selected.
        """
        table = self.where(kind, **values)
        if table.empty:
            raise NoRows(f"no rows of the kind {kind!r} with {values}")
        return table

    def distinct(self, kind: str, column: str) -> list[Any]:
        """Return the distinct values of a column, in ascending order.

        Args:
            kind: The kind of measurement.
            column: Name of the column.
        """
        return sorted(self[kind][column].unique().tolist())

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)
