"""What each row of a batch does next."""

from typing import NamedTuple, Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding
from trialogue.randomness import Choose

NO_TOKEN = -1


class Moves(NamedTuple):
    """What each row does next; all (rows,) tensors.

    A row continues from the first `length` tokens of row `source` and then appends `token`, unless that is
    `NO_TOKEN`: then it is parked, which costs nothing, and may still be a source. A group of rows ends when all
    of its rows are `done`; its output is its first row, and a group that ends incomplete has failed.
    """

    source: Tensor
    length: Tensor
    token: Tensor
    done: Tensor

    @classmethod
    def stay(cls, decoding: Decoding) -> Self:
        """Every row keeps what it has and is not done."""
        rows = len(decoding.lengths)
        return cls(
            torch.arange(rows),
            decoding.lengths.clone(),
            torch.full((rows,), NO_TOKEN),
            torch.zeros(rows, dtype=torch.bool),
        )

    def append(self, decoding: Decoding, rows: Tensor, choose: Choose) -> None:
        """Draw a token for each of `rows` (n,) from the oracle's distribution after what the row keeps."""
        if rows.numel():
            self.token.index_copy_(0, rows, choose(decoding.log_probs(rows, self.length[rows]), rows))

    def applied(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return `tokens` (rows, capacity) after the moves, and the lengths (rows,).

        Raises `InputError` for a move that keeps more than a row can hold, or appends where there is no room.
        """
        source, room = self.source, tokens.shape[1]
        beyond = (self.length < 0) | (self.length + (self.token >= 0) > room)
        for row in beyond.nonzero()[:1, 0].tolist():
            hint = f"row {row} holds at most {room} tokens: keep no more, and append only where there is room"
            raise InputError("moves", (int(self.length[row]), int(self.token[row])), hint)
        tokens = tokens[source] if bool((source != torch.arange(len(source))).any()) else tokens.clone()
        grown = (self.token >= 0).nonzero()[:, 0]
        tokens[grown, self.length[grown]] = self.token[grown]
        return tokens, self.length + (self.token >= 0)
