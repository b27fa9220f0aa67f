"""Log-probabilities of completions, accumulated while rows grow."""

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.contract.moves import Moves


class Scores:
    """Log-probabilities of every prefix of each completion, before truncation.

    Args:
        capacity: Largest number of tokens of a row.

    Attributes:
        values: Accumulated log-probabilities (rows, capacity + 1) float64. NaN if a token was appended without
            computing its distribution in the same step.
    """

    def __init__(self, capacity: int) -> None:
        self.values = torch.zeros(0, capacity + 1, dtype=torch.float64)
        self._distributions: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, lengths, log-probabilities

    def add_distributions(self, rows: Tensor, lengths: Tensor, log_probs: Tensor) -> None:
        """Record the log-probabilities computed in this step.

        Args:
            rows: Rows (n,).
            lengths: Lengths (n,) to which the rows were cut.
            log_probs: Log-probabilities (n, vocab) of the next tokens.
        """
        self._distributions.append((rows, lengths, log_probs))

    def add(self, rows: int) -> None:
        """Append `rows` rows without a completion."""
        zeros = torch.zeros(rows, self.values.shape[1], dtype=torch.float64)
        self.values = torch.cat((self.values, zeros))

    def select(self, rows: Tensor) -> None:
        """Keep `rows` (n,), in this order."""
        self.values = self.values[rows]

    def continue_from(self, source: Tensor, rows: Tensor) -> None:
        """Copy the scores of `source` (n,) to `rows` (n,)."""
        self.values[rows] = self.values[source]

    def apply(self, moves: Moves) -> None:
        """Add the log-probabilities of appended tokens to rows that have been copied from their sources."""
        values, source = self.values.numpy(), moves.source.numpy()
        kept, token = moves.length.numpy(), moves.token.numpy()
        kernels.mark_unscored(values, kept, token)
        for rows, lengths, log_probs in self._distributions:
            kernels.score(values, source, kept, token, rows.numpy(), lengths.numpy(), log_probs.numpy())
        self._distributions.clear()
