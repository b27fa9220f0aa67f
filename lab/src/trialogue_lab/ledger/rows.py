"""Rows of a result by kind: each kind of measurement is a table with columns of its own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pandas import DataFrame


class NoRows(LookupError):
    """Raised where a statistic asks for rows of a kind that was not measured."""


class Rows(Mapping[str, DataFrame]):
    """The rows of one result; `rows["kind"]` is a DataFrame that holds the columns of this kind alone.

    `records` are the measurements, one a mapping; the value in the column `kind` says which kind it is. A kind that
    was not measured raises `NoRows`. `config` holds the values of the run's config.
    """

    def __init__(
        self,
        records: Sequence[Mapping[str, Any]],
        kind: str = "kind",
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.records, self.config = records, config or {}
        by_kind: dict[str, list[Mapping[str, Any]]] = {}
        for record in records:
            by_kind.setdefault(str(record.get(kind, "")), []).append(record)
        self._by_kind = by_kind
        self._frames: dict[str, DataFrame] = {}

    def __getitem__(self, kind: str) -> DataFrame:
        if kind not in self._by_kind:
            raise NoRows(f"no rows of the kind {kind!r}")
        if kind not in self._frames:
            self._frames[kind] = DataFrame(self._by_kind[kind])
        # A shallow copy: a statistic that adds a column changes no other statistic's rows.
        return self._frames[kind].copy(deep=False)

    def where(self, kind: str, /, **values: object) -> DataFrame:
        """The rows of a kind whose columns have the given values: `rows.where("training", data="unseen")`."""
        table = self[kind]
        for column, value in values.items():
            table = table[table[column] == value]
        return table

    def distinct(self, kind: str, column: str) -> list[Any]:
        """The different values in a column of a kind, in ascending order."""
        return sorted(self[kind][column].unique().tolist())

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)
