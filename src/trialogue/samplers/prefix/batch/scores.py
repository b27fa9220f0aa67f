"""Log-probabilities of completions, accumulated as rows grow."""

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.contract.moves import Moves


class Scores:
    """The oracle's log-probability of every prefix of each row's completion, before truncation.

    `values` (rows, capacity + 1) float64 is NaN where a token was appended without asking for its distribution in the
    same step.
    """

    def __init__(self, capacity: int) -> None:
        self.values = torch.zeros(0, capacity + 1, dtype=torch.float64)
        self._answers: list[tuple[Tensor, Tensor, Tensor]] = []  # rows, lengths, log-probabilities

    def answered(self, rows: Tensor, lengths: Tensor, log_probs: Tensor) -> None:
        """Note that `rows` (n,), cut to `lengths` (n,), were just told these `log_probs` (n, vocab)."""
        self._answers.append((rows, lengths, log_probs))

    def add(self, rows: int) -> None:
        """Append rows that stand at their prompts."""
        zeros = torch.zeros(rows, self.values.shape[1], dtype=torch.float64)
        self.values = torch.cat((self.values, zeros))

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order."""
        self.values = self.values[rows]

    def continue_from(self, source: Tensor, rows: Tensor) -> None:
        """Let `rows` have the scores of `source` (both (n,))."""
        self.values[rows] = self.values[source]

    def apply(self, moves: Moves) -> None:
        """Score what the rows append, which continue from their sources already."""
        values, source = self.values.numpy(), moves.source.numpy()
        kept, token = moves.length.numpy(), moves.token.numpy()
        kernels.unscored(values, kept, token)
        for rows, lengths, log_probs in self._answers:
            kernels.score(values, source, kept, token, rows.numpy(), lengths.numpy(), log_probs.numpy())
        self._answers.clear()
