"""A verifier that knows nothing: the control for every claim that a verifier helps."""

import torch
from torch import Tensor

from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import Streams, seed_of


class RandomVerifier(Verifier):
    """A uniform number in [0, 1) per prefix: a random function, so that a prefix keeps its value."""

    most = 1.0

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed_of(seed, "random verifier")

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Values (n,) of the sequences in `rows` (n,)."""
        return uniform_of_prefixes(self._seed, decoding, rows)


def uniform_of_prefixes(seed: int, decoding: Decoding, rows: Tensor) -> Tensor:
    """A uniform number (n,) float64 in [0, 1) for each of the prefixes in `rows` (n,), by `seed` and prefix alone."""
    keys = keys_of_prefixes(seed, decoding, rows)
    return Streams(seed, keys).uniform(torch.arange(len(rows)))


def keys_of_prefixes(seed: int, decoding: Decoding, rows: Tensor) -> Tensor:
    """A key (n,) int64 of random streams for each of the prefixes in `rows` (n,), by `seed` and prefix alone."""
    tokens, lengths = decoding.tokens[rows].tolist(), decoding.lengths[rows].tolist()
    prefixes = [tuple(row[:length]) for row, length in zip(tokens, lengths, strict=True)]
    return torch.tensor([seed_of(seed, prefix) for prefix in prefixes], dtype=torch.int64)
