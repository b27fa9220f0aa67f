"""A verifier with random values, used as a baseline for experiments with verifiers."""

import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import Streams, seed_of


class RandomVerifier(Verifier):
    """Verifier whose value of a prefix is a random number, uniform on [0, 1).

    The value depends only on `seed` and the prefix, so repeated evaluations agree.

    Args:
        seed: Random seed (default: 0).
    """

    most = 1.0

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed_of(seed, "random verifier")

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the values (n,) of the sequences in `rows` (n,)."""
        return prefix_uniforms(self._seed, decoding, rows)


def prefix_uniforms(seed: int, decoding: Decoding, rows: Tensor) -> Tensor:
    """Return uniform numbers (n,) float64 in [0, 1) that depend only on `seed` and the prefixes in `rows` (n,)."""
    keys = prefix_keys(seed, decoding, rows)
    return Streams(seed, keys).uniform(torch.arange(len(rows)))


def prefix_keys(seed: int, decoding: Decoding, rows: Tensor) -> Tensor:
    """Return keys (n,) int64 of random streams that depend only on `seed` and the prefixes in `rows` (n,)."""
    tokens, lengths = decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist()
    prefixes = [tuple(row[:length]) for row, length in zip(tokens, lengths, strict=True)]
    return torch.tensor([seed_of(seed, prefix) for prefix in prefixes], dtype=torch.int64)
