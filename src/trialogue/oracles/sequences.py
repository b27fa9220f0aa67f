"""Tensors of token sequences."""

from collections.abc import Sequence

import torch
from torch import Tensor


def ends(tokens: Tensor, lengths: Tensor, limit: Tensor, eos: int | None) -> Tensor:
    """Return whether each sequence is complete, (n,) bool: it has reached its limit or ends with `eos`."""
    complete = lengths >= limit
    if eos is None:
        return complete
    last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
    return complete | ((last == eos) & (lengths > 0))


def padded(sequences: Sequence[Sequence[int]], capacity: int | None = None) -> tuple[Tensor, Tensor]:
    """Return sequences of token ids as a right-padded tensor (n, capacity) int64, and their lengths (n,) int64."""
    lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.int64)
    longest = int(lengths.max()) if len(sequences) else 0
    tokens = torch.zeros(len(sequences), longest if capacity is None else capacity, dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.as_tensor(sequence, dtype=torch.int64)
    return tokens, lengths


def whole_sequences(vocab_size: int, sites: int, device: torch.device | str = "cpu") -> Tensor:
    """Return all sequences (vocab^N, N) int64, in the order of `itertools.product` (the last site changes first)."""
    places = vocab_size ** torch.arange(sites - 1, -1, -1, device=device)
    return torch.arange(vocab_size**sites, device=device)[:, None] // places % vocab_size


def sites_of(block: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sites of each row of a block in ascending order, padded to the size k of the largest row.

    Padding comes first, so that the table over the sites of a smaller row is the beginning of the table over k sites.

    Args:
        block: Sites (rows, N) bool.

    Returns:
        Sites (rows, k) int64, and which of them are padding (rows, k) bool.
    """
    size = int(block.sum(1).max()) if len(block) else 0
    sites = block.long().argsort(dim=1, stable=True)[:, block.shape[1] - size :]
    return sites, ~block.gather(1, sites)
