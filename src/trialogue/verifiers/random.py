"""A verifier with random values, used as a baseline for experiments with verifiers."""

import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import Streams, derive_seed


class RandomVerifier(Verifier):
    """Verifier whose value of a prefix is a random number, uniform on [0, 1).

    The value depends only on `seed` and the prefix, so repeated evaluations agree.

    Args:
        seed: Random seed (default: 0).
    """

    most = 1.0

    def __init__(self, seed: int = 0) -> None:
        self._seed = derive_seed(seed, "random verifier")

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return a random number for each sequence.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64 in [0, 1), one for each index in `rows`.
        """
        return prefix_uniforms(self._seed, decoding, rows)


def prefix_uniforms(seed: int, decoding: Decoding, rows: Tensor) -> Tensor:
    """Return a reproducible uniform random number for each sequence.

    Args:
        seed: Random seed.
        decoding: Batch of sequences.
        rows: Indices (n,) int64 of rows of the batch.

    Returns:
        Numbers (n,) float64 in [0, 1).
    """
    keys = prefix_keys(seed, decoding, rows)
    return Streams(seed, keys).uniform(torch.arange(len(rows)))


def prefix_keys(seed: int, decoding: Decoding, rows: Tensor) -> Tensor:
    """Return a reproducible key of a random stream for each sequence.

    Args:
        seed: Random seed.
        decoding: Batch of sequences.
        rows: Indices (n,) int64 of rows of the batch.

    Returns:
        Keys (n,) int64. Equal sequences have equal keys.
    """
    tokens, lengths = decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist()
    prefixes = [tuple(row[:length]) for row, length in zip(tokens, lengths, strict=True)]
    return torch.tensor([derive_seed(seed, prefix) for prefix in prefixes], dtype=torch.int64)
