"""Oracles that weigh the next token of one prefix at a time, and laws given as a list of sequences."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle

Prefix = tuple[int, ...]


class WeightedPrefixes(PrefixOracle):
    """An oracle that answers from the prefix alone, one prefix at a time, and remembers nothing between calls.

    Subclasses give non-negative weights; what is no beginning of any sequence of the law has no positive one, and
    asking after it raises `InputError`.
    """

    @abstractmethod
    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Weights (vocab_size) of the token after `prefix`, not normalised; all zero where there is none."""

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        prefixes = [
            tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
        weights = torch.empty(len(prefixes), self.vocab_size, dtype=torch.float64)
        for row, prefix in enumerate(prefixes):
            weights[row] = torch.as_tensor(self.weights(prefix), dtype=torch.float64)
            if not float(weights[row].sum()) > 0:
                raise InputError("tokens", prefix, "no sequence of the law begins like this")
        return (weights / weights.sum(1, keepdim=True)).log()


class Listed(WeightedPrefixes):
    """The law that gives sequence i, row i of `sequences` (N, L) int64, the weight `weights[i]` (N,).

    Equal rows add up. Raises `InputError` where there is no sequence of at least one token, a token lies outside
    0..vocab_size - 1, or the weights are not N non-negative finite numbers of positive sum.
    """

    def __init__(self, sequences: Tensor, weights: Tensor, vocab_size: int) -> None:
        if sequences.ndim != 2 or not sequences.numel():
            raise InputError("sequences", tuple(sequences.shape), "give a matrix (N, L) of tokens")
        if not 0 <= int(sequences.min()) <= int(sequences.max()) < vocab_size:
            outside = sequences[(sequences < 0) | (sequences >= vocab_size)]
            raise InputError("sequences", int(outside[0]), f"use tokens from 0 to {vocab_size - 1}")
        weights = weights.double()
        if weights.shape != sequences.shape[:1] or not bool((weights >= 0).all() & weights.isfinite().all()):
            raise InputError(
                "weights", weights.tolist(), f"give {len(sequences)} non-negative finite numbers"
            )
        if float(weights.sum()) == 0:
            raise InputError("weights", 0.0, "give a positive weight to one sequence at least")
        self.vocab_size, self.max_length = vocab_size, sequences.shape[1]
        self._after: dict[Prefix, list[float]] = {}
        self._law: dict[Prefix, float] = {}
        total = float(weights.sum())
        for sequence, weight in zip(map(tuple, sequences.tolist()), weights.tolist(), strict=True):
            if weight == 0:
                continue
            self._law[sequence] = self._law.get(sequence, 0.0) + weight / total
            for length, token in enumerate(sequence):
                self._after.setdefault(sequence[:length], [0.0] * vocab_size)[token] += weight

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Total weight of the sequences that continue `prefix` with each token."""
        return self._after.get(prefix, [0.0] * self.vocab_size)

    def states(self) -> Tensor:
        """The different sequences of positive weight (n, L) int64, in the order in which they were given."""
        return torch.tensor(list(self._law), dtype=torch.int64)

    def probabilities(self) -> Tensor:
        """Probabilities (n,) float64 of `states`."""
        return torch.tensor(list(self._law.values()), dtype=torch.float64)


def digits_of(number: int, width: int) -> Prefix:
    """The decimal digits of `number`, most significant first, with zeros before them up to `width`."""
    return tuple(map(int, f"{number:0{width}d}"))


def number_of(digits: Sequence[int]) -> int:
    """The number that decimal digits write; 0 for none."""
    return int("".join(map(str, digits)) or "0")


def decimal_edges(prefix: Sequence[int], width: int) -> Iterator[int]:
    """The eleven edges of the ten intervals of `width`-digit numbers that continue `prefix` by one digit.

    Interval d holds the numbers from edge d, included, to edge d + 1, excluded.
    """
    block = 10 ** (width - len(prefix) - 1)
    start = number_of(prefix) * 10
    return ((start + digit) * block for digit in range(11))


def one_hot(token: int, vocab_size: int) -> list[float]:
    """All weight on one token."""
    weights = [0.0] * vocab_size
    weights[token] = 1.0
    return weights
