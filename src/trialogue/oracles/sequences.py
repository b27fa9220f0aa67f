"""Sequences of tokens as tensors: padded, listed, cut and ended."""

from collections.abc import Sequence

import torch
from torch import Tensor


def ends(tokens: Tensor, lengths: Tensor, limit: Tensor, eos: int | None) -> Tensor:
    """Which sequences (n,) are complete: the limit is reached, or the last token is the end of sequence."""
    complete = lengths >= limit
    if eos is None:
        return complete
    last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
    return complete | ((last == eos) & (lengths > 0))


def padded(sequences: Sequence[Sequence[int]], capacity: int | None = None) -> tuple[Tensor, Tensor]:
    """Sequences of token ids as one right-padded (n, capacity) int64 tensor, and their lengths (n,)."""
    lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.int64)
    longest = int(lengths.max()) if len(sequences) else 0
    tokens = torch.zeros(len(sequences), longest if capacity is None else capacity, dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.as_tensor(sequence, dtype=torch.int64)
    return tokens, lengths


def whole_sequences(vocab_size: int, sites: int, device: torch.device | str = "cpu") -> Tensor:
    """All sequences (vocab^N, N) int64 in the order of `itertools.product`: the last site changes first."""
    places = vocab_size ** torch.arange(sites - 1, -1, -1, device=device)
    return torch.arange(vocab_size**sites, device=device)[:, None] // places % vocab_size


def sites_of(block: Tensor) -> tuple[Tensor, Tensor]:
    """Sites (rows, k) of each row of `block` (rows, N) in ascending order, and which (rows, k) only pad.

    k is the size of the largest block. Padding comes first, so that a table over the last sites of a small block is
    the beginning of the table over all k.
    """
    size = int(block.sum(1).max()) if len(block) else 0
    sites = block.long().argsort(dim=1, stable=True)[:, block.shape[1] - size :]
    return sites, ~block.gather(1, sites)
