"""Models that compute next-token weights for one prefix at a time, and distributions given as lists."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from trialogue.arrays import Integers, Reals, integer_tensor
from trialogue.errors import InputError
from trialogue.oracles import PrefixOracle
from trialogue.validation import Count, check, integer_range, validated

Prefix = tuple[int, ...]


class WeightedPrefixes(PrefixOracle):
    """Base class of models that compute the next-token weights for one prefix at a time.

    Subclasses define `weights`, which returns non-negative numbers. A prefix that starts no sequence has only zero
    weights, and `next_log_probs` raises `InputError` for it.
    """

    @abstractmethod
    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the unnormalized probabilities of the token after `prefix`.

        Args:
            prefix: Previous tokens.

        Returns:
            Non-negative weights (vocab_size,). All are zero if no sequence continues the prefix.
        """

    def begins(self, prefix: Prefix) -> bool:
        """Return whether a sequence of positive probability starts with `prefix`."""
        return all(
            0 <= token < self.vocab_size and self.weights(prefix[:position])[token] > 0
            for position, token in enumerate(prefix)
        )

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities of the next token after each prefix.

        Args:
            tokens: Prefixes (n, width) int64, right-padded.
            lengths: Lengths (n,) int64 of the prefixes.

        Returns:
            Log-probabilities (n, vocab_size) float64.

        Raises:
            InputError: If a prefix is too long, contains an invalid token or starts no sequence.
        """
        prefixes = [
            tuple(row[:length]) for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
        weights = torch.empty(len(prefixes), self.vocab_size, dtype=torch.float64)
        for row, prefix in enumerate(prefixes):
            if self.max_length is not None and len(prefix) >= self.max_length:
                raise InputError("tokens", prefix, f"use prefixes of fewer than {self.max_length} tokens")
            if not all(0 <= token < self.vocab_size for token in prefix):
                raise InputError("tokens", prefix, f"use tokens from 0 to {self.vocab_size - 1}")
            weights[row] = torch.as_tensor(self.weights(prefix), dtype=torch.float64)
            if not float(weights[row].sum()) > 0:
                raise InputError("tokens", prefix, "use a prefix of a sequence with positive probability")
        return (weights / weights.sum(1, keepdim=True)).log()


class ListedDistribution(WeightedPrefixes):
    """Distribution over a list of sequences with given weights.

    The probability of a sequence is proportional to the sum of the weights of all rows that contain it.

    Args:
        sequences: Sequences (N, L) int64, one per row.
        weights: Non-negative weights (N,) with a positive sum.
        vocab_size: Number of tokens.

    Raises:
        InputError: If there is no sequence, a token is out of range, or the weights are invalid.
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
            raise InputError("weights", 0.0, "give at least one sequence a positive weight")
        self.vocab_size, self.max_length = vocab_size, sequences.shape[1]
        possible = weights > 0
        # In sorted order, the sequences with a common prefix are contiguous.
        self._rows, first, inverse = np.unique(
            sequences[possible].numpy(), axis=0, return_index=True, return_inverse=True
        )
        # Division by the largest weight keeps the total finite.
        scaled = (weights[possible] / weights.max()).numpy()
        self._row_weights = np.bincount(inverse.ravel(), weights=scaled, minlength=len(self._rows))
        self._given = np.argsort(first)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the total weight of the sequences that continue `prefix` with each token.

        Args:
            prefix: Previous tokens.

        Returns:
            Weights (vocab_size,). All are zero if no sequence continues the prefix.
        """
        if len(prefix) >= self._rows.shape[1]:
            return [0.0] * self.vocab_size
        start, stop = 0, len(self._rows)
        for position, token in enumerate(prefix):
            low, high = np.searchsorted(self._rows[start:stop, position], (token, token + 1)).tolist()
            start, stop = start + low, start + high
        after, row_weights = self._rows[start:stop, len(prefix)], self._row_weights[start:stop]
        weights: list[float] = np.bincount(after, weights=row_weights, minlength=self.vocab_size).tolist()
        return weights

    def states(self) -> Tensor:
        """Return the distinct sequences of positive weight.

        Returns:
            Sequences (n, L) int64 in the order of their first occurrence.
        """
        return torch.from_numpy(self._rows[self._given])

    def probabilities(self) -> Tensor:
        """Return the probabilities (n,) float64 of `states`, in the same order."""
        return torch.from_numpy(self._row_weights[self._given] / self._row_weights.sum())


class WithStopToken(WeightedPrefixes):
    """Model that appends a stop token `eos` to the sequences of another model.

    The stop token is the last token of the vocabulary, which has one token more than the vocabulary of the other
    oracle.

    Args:
        oracle: Oracle whose sequences all have the same length.
    """

    eos: int

    def __init__(self, oracle: WeightedPrefixes) -> None:
        self._oracle, self._length = oracle, fixed_length(oracle)
        self.vocab_size, self.eos = oracle.vocab_size + 1, oracle.vocab_size
        self.max_length: int = self._length + 1

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the unnormalized probabilities of the token after `prefix`.

        Args:
            prefix: Previous tokens.

        Returns:
            Weights (vocab_size,). The stop token has weight 0 before the end of a sequence, and all weight after it.
        """
        if len(prefix) < self._length:
            return [*self._oracle.weights(prefix), 0.0]
        ends = len(prefix) == self._length and self._oracle.begins(prefix)
        return one_hot(self.eos, self.vocab_size) if ends else [0.0] * self.vocab_size


def fixed_length(oracle: WeightedPrefixes, field: str = "oracle") -> int:
    """Return the sequence length of an oracle whose sequences all have the same length.

    Args:
        oracle: Oracle.
        field: Name of the oracle in error messages.

    Raises:
        InputError: If the sequences of the oracle do not have a fixed length.
    """
    if not isinstance(oracle, WeightedPrefixes) or oracle.max_length is None or oracle.eos is not None:
        raise InputError(field, type(oracle).__name__, "use an oracle whose sequences have one length")
    return oracle.max_length


def token_rows(tokens: Tensor, length: int) -> Tensor:
    """Convert a batch of token sequences to int64, and raise `InputError` if its shape is wrong.

    Args:
        tokens: Tokens (n, length).
        length: Required number of columns.

    Returns:
        Tokens (n, length) int64.

    Raises:
        InputError: If the tokens are not integers or have another shape.
    """
    tokens = integer_tensor("tokens", tokens, f"give an integer matrix (n, {length}) of tokens")
    if tokens.ndim != 2 or tokens.shape[1] != length:
        raise InputError("tokens", tuple(tokens.shape), f"give a matrix (n, {length}) of tokens")
    return tokens


def to_digits(number: int, width: int) -> Prefix:
    """Convert a number to its decimal digits, most significant first.

    Args:
        number: Non-negative integer.
        width: Minimum number of digits. Shorter numbers are padded with leading zeros.
    """
    return tuple(map(int, f"{number:0{width}d}"))


def from_digits(digits: Sequence[int]) -> int:
    """Convert decimal digits (most significant first) to a number. No digits give 0."""
    return int("".join(map(str, digits)) or "0")


def decimal_edges(prefix: Sequence[int], width: int) -> Iterator[int]:
    """Divide the numbers of `width` digits that start with the digits `prefix` into ten intervals by the next digit.

    Args:
        prefix: First digits, fewer than `width`.
        width: Number of digits.

    Returns:
        Eleven interval edges. The numbers whose next digit is d range from edge d (included) to edge d + 1 (excluded).

    Raises:
        InputError: If the prefix has `width` digits or more.
    """
    if len(prefix) >= width:
        raise InputError("prefix", tuple(prefix), f"give fewer than {width} digits")
    block = 10 ** (width - len(prefix) - 1)
    start = from_digits(prefix) * 10
    return ((start + digit) * block for digit in range(11))


def one_hot(token: int, vocab_size: int) -> list[float]:
    """Return weights (vocab_size,) that are 1 for one token and 0 for all others.

    Args:
        token: Token with weight 1.
        vocab_size: Number of tokens.

    Raises:
        InputError: If the token is out of range.
    """
    weights = [0.0] * vocab_size
    weights[
        check("token", token, integer_range(0, vocab_size - 1), f"use tokens from 0 to {vocab_size - 1}")
    ] = 1.0
    return weights
