"""Value functions given by a table that contains the value of every prefix."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import Natural, NonNegative, check

Prefix = tuple[int, ...]


class TableValues(Verifier):
    """Value function that looks up each prefix in a table.

    An instance is a verifier and can also be called with a prefix.

    Args:
        table: Mapping from prefixes to finite values of at least 0. A prefix is a tuple of the token ids of prompt and
            completion. The table must contain every prefix and every complete sequence that has positive probability
            under the oracle.

    Raises:
        InputError: If a key is not a tuple of token ids, or a value is negative, infinite or NaN. Evaluating a prefix
            that is missing from the table raises the same error.

    Example:
        >>> from trialogue.verifiers import TableValues
        >>> values = TableValues({(): 0.5, (0,): 1.0, (1,): 0.25})
        >>> values((1,))
        0.25
    """

    def __init__(self, table: Mapping[Prefix, float]) -> None:
        if not isinstance(table, Mapping) or not table:
            raise InputError("table", table, "pass a dict from prefixes (tuples of token ids) to values")
        self.table: Mapping[Prefix, float] = dict(_checked(table))
        self.most = max(self.table.values()) or 1.0

    def __call__(self, prefix: Prefix) -> float:
        """Return the value of a prefix in the table.

        Args:
            prefix: Token ids of prompt and completion.

        Raises:
            InputError: If the table does not contain the prefix.
        """
        try:
            return self.table[tuple(prefix)]
        except KeyError:
            size = len(self.table)
            hint = f"the table of {size} values has no entry for this prefix; add every prefix that can occur"
            raise InputError("prefix", tuple(prefix), hint) from None

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Look up the values of some sequences of a batch.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64, one for each index in `rows`.

        Raises:
            InputError: If the table does not contain one of the sequences.
        """
        tokens, lengths = decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist()
        values = [self(tuple(row[:length])) for row, length in zip(tokens, lengths, strict=True)]
        return torch.tensor(values, dtype=torch.float64)


def _checked(table: Mapping[Prefix, float]) -> Iterator[tuple[Prefix, float]]:
    for prefix, value in table.items():
        hint = "use tuples of token ids as keys"
        if not isinstance(prefix, tuple):
            raise InputError("table", prefix, hint)
        yield (
            tuple(check("table", token, Natural, hint) for token in prefix),
            check(f"the value of {prefix}", value, NonNegative),
        )
