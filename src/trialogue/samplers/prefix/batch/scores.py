"""Accumulated log-probabilities of completions."""

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.contract.moves import Moves


class Scores:
    """Log-probabilities of completions under the model (before truncation), updated in each step.

    Args:
        capacity: Largest number of tokens of a row.

    Attributes:
        values: Accumulated log-probabilities (rows, capacity + 1) float64 of the first 0, 1, ... tokens of
            each row. NaN if a token was appended without its distribution.
    """

    def __init__(self, capacity: int) -> None:
        self.values = torch.zeros(0, capacity + 1, dtype=torch.float64)
        self._distributions: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, lengths, log-probabilities

    def add_distributions(self, rows: Tensor, lengths: Tensor, log_probs: Tensor) -> None:
        """Store the next-token distributions of a step, from which `apply` computes the log-probabilities.

        Args:
            rows: Row indices (n,).
            lengths: Number (n,) of tokens of each row after which the distribution holds.
            log_probs: Log-probabilities (n, vocab) of the next tokens.
        """
        self._distributions.append((rows, lengths, log_probs))

    def add(self, rows: int) -> None:
        """Append zero log-probabilities for `rows` new rows, which have no completion yet."""
        zeros = torch.zeros(rows, self.values.shape[1], dtype=torch.float64)
        self.values = torch.cat((self.values, zeros))

    def select(self, rows: Tensor) -> None:
        """Keep only the scores of the rows with indices `rows` (n,), in this order."""
        self.values = self.values[rows]

    def continue_from(self, source: Tensor, rows: Tensor) -> None:
        """Overwrite the scores of some rows by the scores of other rows.

        Args:
            source: Rows (n,) that are copied.
            rows: Rows (n,) that are overwritten.
        """
        self.values[rows] = self.values[source]

    def apply(self, moves: Moves) -> None:
        """Add the log-probabilities of the tokens appended in this step, and discard the stored distributions.

        Args:
            moves: The moves of the step. `continue_from` must already have copied the scores of rows that continue from
                other rows.
        """
        values, source = self.values.numpy(), moves.source.numpy()
        kept, token = moves.length.numpy(), moves.token.numpy()
        kernels.mark_unscored(values, kept, token)
        for rows, lengths, log_probs in self._distributions:
            kernels.score(values, source, kept, token, rows.numpy(), lengths.numpy(), log_probs.numpy())
        self._distributions.clear()
