"""Value functions that are written down: a table with the value of every prefix."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import Natural, NonNegative, check

Prefix = tuple[int, ...]


class TableValues(Verifier):
    """The values of `table`: a prefix (prompt and completion, a tuple of token ids) to a number of at least 0.

    It is a mapping's worth of values and a function of a prefix at once: `values((0, 1))` is a float. It has to hold
    every prefix that is asked about: all those the oracle gives a positive probability, complete sequences included.

    Raises `InputError` that names the prefix: here for a key that is no tuple of token ids and for a value that is
    negative, infinite or NaN; where it is asked about a prefix that the table does not hold.
    """

    def __init__(self, table: Mapping[Prefix, float]) -> None:
        if not isinstance(table, Mapping) or not table:
            raise InputError("table", table, "give a dict from prefixes (tuples of token ids) to values")
        self.table: Mapping[Prefix, float] = dict(_checked(table))
        self.most = max(self.table.values()) or 1.0

    def __call__(self, prefix: Prefix) -> float:
        """The value of `prefix`."""
        try:
            return self.table[tuple(prefix)]
        except KeyError:
            hint = f"none of the {len(self.table)} values is of this prefix: give one for each that can occur"
            raise InputError("prefix", tuple(prefix), hint) from None

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        tokens, lengths = decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist()
        values = [self(tuple(row[:length])) for row, length in zip(tokens, lengths, strict=True)]
        return torch.tensor(values, dtype=torch.float64)


def _checked(table: Mapping[Prefix, float]) -> Iterator[tuple[Prefix, float]]:
    for prefix, value in table.items():
        hint = "name a prefix by a tuple of token ids"
        if not isinstance(prefix, tuple):
            raise InputError("table", prefix, hint)
        yield (
            tuple(check("table", token, Natural, hint) for token in prefix),
            check(f"the value of {prefix}", value, NonNegative),
        )
