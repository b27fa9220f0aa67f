"""Consecutive numbers for the distinct rows of integer matrices."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trialogue.compilation import compiled
from trialogue.randomness import mix

Integers = NDArray[np.int64]

_FREE = -1
_FEWEST = 1024


class RowNumbers:
    """Numbering of rows in the order of their first occurrence, by a hash table.

    Attributes:
        count: Number of distinct rows.
    """

    def __init__(self) -> None:
        self.count = 0
        self._rows = np.zeros((0, 0), np.int64)
        self._table = np.zeros(0, np.int64)

    def number(self, rows: Integers) -> tuple[Integers, Integers]:
        """Return the number of each row, and the places of new rows.

        Args:
            rows: Rows (n, width). The width is the same in all calls.

        Returns:
            Numbers (n,), and for each row that did not occur in earlier calls the index of its first occurrence.
        """
        numbers, new, before = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), self.count
        done = 0
        while done < len(rows):
            if self.count == len(self._rows):
                room = np.empty((max(_FEWEST, 4 * self.count), rows.shape[1]), np.int64)
                if self.count:
                    room[: self.count] = self._rows
                self._rows = room
                # At most half of the table is full, and its size is a power of two.
                self._table = np.full(1 << int(2 * len(room) - 1).bit_length(), _FREE)
                _insert(self._rows, self.count, self._table)
            done, self.count = _number(
                rows, done, self._rows, self.count, self._table, numbers, new[self.count - before :]
            )
        return numbers, new[: self.count - before]


@compiled
def _place(row: Integers, rows: Integers, table: Integers) -> int:
    """Return the place of a row in the table, or the free place where it belongs."""
    bits = np.uint64(0)
    for word in row:
        bits = mix(bits ^ np.uint64(word))
    last = len(table) - 1
    place = np.int64(bits >> np.uint64(1)) & last
    while table[place] != _FREE:
        known, same = rows[table[place]], True
        for index in range(len(row)):
            same &= known[index] == row[index]
        if same:
            break
        place = (place + 1) & last
    return int(place)


@compiled
def _insert(rows: Integers, count: int, table: Integers) -> None:
    for number in range(count):
        table[_place(rows[number], rows, table)] = number


@compiled
def _number(
    given: Integers,
    done: int,
    rows: Integers,
    count: int,
    table: Integers,
    numbers: Integers,
    new: Integers,
) -> tuple[int, int]:
    """Write the numbers of the `given` rows and the places of new ones, until there is no room for further rows.

    Returns the number of given rows that have a number, first `done`, and the number of known rows, first `count`.
    """
    before = count
    while done < len(given) and count < len(rows):
        place = _place(given[done], rows, table)
        if table[place] == _FREE:
            rows[count], table[place], new[count - before] = given[done], count, done
            count += 1
        numbers[done] = table[place]
        done += 1
    return done, count


def as_rows(fields: list[Tensor]) -> Integers:
    """Pack several tensors into one integer matrix, in which two rows are equal if they are equal in each tensor.

    Args:
        fields: Tensors with n rows each.

    Returns:
        Integers (n, width).
    """
    parts = [
        field.cpu().contiguous().numpy().view(np.uint8).reshape(len(field), field[:1].nbytes)
        for field in fields
    ]
    padding = -sum(part.shape[1] for part in parts) % 8
    parts.append(np.zeros((len(fields[0]), padding), np.uint8))
    return np.concatenate(parts, 1).view(np.int64)
