"""Class `Moves`, which describes how the sequences of a batch change in one step of a sampler."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose

NO_TOKEN = -1


class Moves(NamedTuple):
    """How all rows of a batch change in one step of a sampler.

    A row is one sequence. It becomes a copy of the first tokens of a source row, followed by at most one new
    token. A sample consists of one or several neighboring rows. It ends when all of them are done. Its first
    row is the output, and it fails if this row is incomplete.

    Attributes:
        source: Index (rows,) int64 of the row, of the same sample, whose tokens are copied. By default the
            row itself.
        length: Number (rows,) int64 of tokens of the source that are kept.
        token: Token (rows,) int64 to append, or -1 (`NO_TOKEN`) for none.
        done: Whether each row (rows,) bool needs no further steps.
    """

    source: Tensor
    length: Tensor
    token: Tensor
    done: Tensor

    @classmethod
    def stay(cls, decoding: Decoding) -> Self:
        """Return moves that leave every row unchanged. Samplers overwrite the entries of the rows that change."""
        rows = len(decoding.lengths)
        return cls(
            torch.arange(rows),
            decoding.lengths.clone(),
            torch.full((rows,), NO_TOKEN),
            torch.zeros(rows, dtype=torch.bool),
        )

    def append(self, decoding: Decoding, rows: Tensor, choose: Choose) -> None:
        """Draw the next token of each given row from the model, and add it to these moves.

        Args:
            decoding: The batch of sequences (rows), with the model's next-token distributions.
            rows: Indices (n,) int64 of rows that continue from themselves.
            choose: Function that draws one index per row in proportion to given weights.
        """
        if rows.numel():
            self.token.index_copy_(0, rows, choose(decoding.log_probs(rows, self.length[rows]), rows))

    def applied(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Apply the moves to a tensor of token ids, and return the result.

        Args:
            tokens: Token ids (rows, capacity) before the moves.

        Returns:
            Token ids (rows, capacity) and lengths (rows,) int64 after the moves. Entries beyond the lengths are
            undefined.

        Raises:
            InputError: If a row would exceed its capacity.
        """
        source, room = self.source, tokens.shape[1]
        beyond = (self.length < 0) | (self.length + (self.token >= 0) > room)
        for row in beyond.nonzero()[:1, 0].tolist():
            hint = f"row {row} has room for {room} tokens; keep fewer tokens, or do not append one"
            raise InputError("moves", (int(self.length[row]), int(self.token[row])), hint)
        tokens = tokens[source] if bool((source != torch.arange(len(source))).any()) else tokens.clone()
        grown = (self.token >= 0).nonzero()[:, 0]
        tokens[grown, self.length[grown]] = self.token[grown]
        return tokens, self.length + (self.token >= 0)
