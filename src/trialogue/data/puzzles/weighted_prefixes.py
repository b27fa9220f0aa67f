"""Oracles that weigh the next token of one prefix at a time, and laws given as a list of sequences."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import Integers, Reals, whole_tensor
from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle
from trialogue.validation import Count, check, integer_range, validated

Prefix = tuple[int, ...]


class WeightedPrefixes(PrefixOracle):
    """An oracle that answers from the prefix alone, one prefix at a time, and remembers nothing between calls.

    Subclasses give non-negative weights; what is no beginning of any sequence of the law has no positive one, and
    asking after it raises `InputError`.
    """

    @abstractmethod
    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Weights (vocab_size) of the token after `prefix`, not normalised; all zero where there is none."""

    def begins(self, prefix: Prefix) -> bool:
        """Whether a sequence of the law begins with `prefix`, which is asked after token by token."""
        return all(
            0 <= token < self.vocab_size and self.weights(prefix[:place])[token] > 0
            for place, token in enumerate(prefix)
        )

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) float64 after the first `lengths` (n,) of `tokens` (n, capacity)."""
        prefixes = [
            tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
        weights = torch.empty(len(prefixes), self.vocab_size, dtype=torch.float64)
        for row, prefix in enumerate(prefixes):
            if self.max_length is not None and len(prefix) >= self.max_length:
                raise InputError("tokens", prefix, f"ask after fewer than {self.max_length} tokens")
            if not all(0 <= token < self.vocab_size for token in prefix):
                raise InputError("tokens", prefix, f"use tokens from 0 to {self.vocab_size - 1}")
            weights[row] = torch.as_tensor(self.weights(prefix), dtype=torch.float64)
            if not float(weights[row].sum()) > 0:
                raise InputError("tokens", prefix, "no sequence of the law begins like this")
        return (weights / weights.sum(1, keepdim=True)).log()


class Listed(WeightedPrefixes):
    """The law that gives sequence i, row i of `sequences` (N, L) int64, the weight `weights[i]` (N,).

    Equal rows add up. Raises `InputError` where there is no sequence of at least one token, a token is no whole
    number from 0 to vocab_size - 1, or the weights are not N non-negative finite numbers of positive sum.
    """

    @validated
    def __init__(
        self,
        sequences: Annotated[Tensor, Integers("N L", least=0)],
        weights: Annotated[Tensor, Reals("N", least=0)],
        vocab_size: Count,
    ) -> None:
        weights = weights.double()
        if int(sequences.max()) >= vocab_size:
            raise InputError("sequences", int(sequences.max()), f"use tokens from 0 to {vocab_size - 1}")
        if len(weights) != len(sequences):
            raise InputError("weights", weights.tolist(), f"give {len(sequences)} numbers")
        if float(weights.sum()) == 0:
            raise InputError("weights", 0.0, "give a positive weight to one sequence at least")
        self.vocab_size, self.max_length = vocab_size, sequences.shape[1]
        possible = weights > 0
        # Sorted by rows: what begins with a prefix stands together. A largest weight of one keeps the total finite.
        self._rows, first, places = np.unique(
            sequences[possible].numpy(), axis=0, return_index=True, return_inverse=True
        )
        shares = (weights[possible] / weights.max()).numpy()
        self._row_weights = np.bincount(places.ravel(), weights=shares, minlength=len(self._rows))
        self._given = np.argsort(first)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Total weight of the sequences that continue `prefix` with each token, as shares of the largest weight."""
        if len(prefix) >= self._rows.shape[1]:
            return [0.0] * self.vocab_size
        start, stop = 0, len(self._rows)
        for place, token in enumerate(prefix):
            low, high = np.searchsorted(self._rows[start:stop, place], (token, token + 1)).tolist()
            start, stop = start + low, start + high
        after, row_weights = self._rows[start:stop, len(prefix)], self._row_weights[start:stop]
        weights: list[float] = np.bincount(after, weights=row_weights, minlength=self.vocab_size).tolist()
        return weights

    def states(self) -> Tensor:
        """The different sequences of positive weight (n, L) int64, in the order in which they were given."""
        return torch.from_numpy(self._rows[self._given])

    def probabilities(self) -> Tensor:
        """Probabilities (n,) float64 of `states`."""
        return torch.from_numpy(self._row_weights[self._given] / self._row_weights.sum())


class Stopped(WeightedPrefixes):
    """The sequences of an oracle of one length, each with a stop token after it: the last of the vocabulary, `eos`.

    Raises `InputError` where the sequences of `oracle` are not of one length.
    """

    eos: int

    def __init__(self, oracle: WeightedPrefixes) -> None:
        self._oracle, self._length = oracle, fixed_length(oracle)
        self.vocab_size, self.eos = oracle.vocab_size + 1, oracle.vocab_size
        self.max_length: int = self._length + 1

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """What the oracle answers, and no weight to stop; after its last token all weight is there."""
        if len(prefix) < self._length:
            return [*self._oracle.weights(prefix), 0.0]
        ends = len(prefix) == self._length and self._oracle.begins(prefix)
        return one_hot(self.eos, self.vocab_size) if ends else [0.0] * self.vocab_size


def fixed_length(oracle: WeightedPrefixes, field: str = "oracle") -> int:
    """How long the sequences of `oracle` are; raises `InputError`, which names `field`, where not all are as long."""
    if not isinstance(oracle, WeightedPrefixes) or oracle.max_length is None or oracle.eos is not None:
        raise InputError(field, type(oracle).__name__, "use an oracle whose sequences have one length")
    return oracle.max_length


def token_rows(tokens: Tensor, length: int) -> Tensor:
    """`tokens` where they are a matrix (n, length) of whole numbers; raises `InputError` where they are not."""
    tokens = whole_tensor("tokens", tokens, f"give whole numbers, a matrix (n, {length}) of tokens")
    if tokens.ndim != 2 or tokens.shape[1] != length:
        raise InputError("tokens", tuple(tokens.shape), f"give a matrix (n, {length}) of tokens")
    return tokens


def digits_of(number: int, width: int) -> Prefix:
    """The decimal digits of `number`, most significant first, with zeros before them up to `width`."""
    return tuple(map(int, f"{number:0{width}d}"))


def number_of(digits: Sequence[int]) -> int:
    """The number that decimal digits write; 0 for none."""
    return int("".join(map(str, digits)) or "0")


def decimal_edges(prefix: Sequence[int], width: int) -> Iterator[int]:
    """The eleven edges of the ten intervals of `width`-digit numbers that continue `prefix` by one digit.

    Interval d holds the numbers from edge d, included, to edge d + 1, excluded. Raises `InputError` where no digit
    is left.
    """
    if len(prefix) >= width:
        raise InputError("prefix", tuple(prefix), f"give fewer than {width} digits")
    block = 10 ** (width - len(prefix) - 1)
    start = number_of(prefix) * 10
    return ((start + digit) * block for digit in range(11))


def one_hot(token: int, vocab_size: int) -> list[float]:
    """All weight on one token; raises `InputError` for a token outside the vocabulary."""
    weights = [0.0] * vocab_size
    weights[
        check("token", token, integer_range(0, vocab_size - 1), f"use tokens from 0 to {vocab_size - 1}")
    ] = 1.0
    return weights
