"""Functions on tensors of token sequences."""

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor


def are_complete(tokens: Tensor, lengths: Tensor, limit: Tensor, eos: int | None) -> Tensor:
    """Return whether sequences are complete, because they have reached their maximum length or end with `eos`.

    Args:
        tokens: Token sequences (n, capacity) int64.
        lengths: Lengths (n,) int64 of the sequences. Later tokens are ignored.
        limit: Maximum lengths (n,) int64.
        eos: End-of-sequence token, or None if there is none.

    Returns:
        Bool tensor (n,).
    """
    complete = lengths >= limit
    if eos is None:
        return complete
    last = tokens.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
    return complete | ((last == eos) & (lengths > 0))


def pad_sequences(sequences: Sequence[Sequence[int]], capacity: int | None = None) -> tuple[Tensor, Tensor]:
    """Convert sequences of different lengths to one tensor, padded with zeros on the right.

    Args:
        sequences: Sequences of token ids.
        capacity: Width of the tensor (default: length of the longest sequence).

    Returns:
        Tokens (n, capacity) int64 and lengths (n,) int64.
    """
    lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.int64)
    longest = int(lengths.max()) if len(sequences) else 0
    tokens = torch.zeros(len(sequences), longest if capacity is None else capacity, dtype=torch.int64)
    is_token = torch.arange(tokens.shape[1]) < lengths[:, None]
    tokens[is_token] = torch.tensor(list(chain.from_iterable(sequences)), dtype=torch.int64)
    return tokens, lengths


def enumerate_sequences(vocab_size: int, sites: int, device: torch.device | str = "cpu") -> Tensor:
    """Return all sequences of N tokens, in the order of `itertools.product` (the last token changes first).

    Args:
        vocab_size: Number of values of a token.
        sites: Length N of the sequences.
        device: Device of the result (default: CPU).

    Returns:
        Sequences (vocab_size^N, N) int64.
    """
    places = vocab_size ** torch.arange(sites - 1, -1, -1, device=device)
    return torch.arange(vocab_size**sites, device=device)[:, None] // places % vocab_size


def list_sites(block: Tensor) -> tuple[Tensor, Tensor]:
    """Convert masks to lists of the selected positions (sites), padded to equal length.

    The indices of each row are in ascending order. Padding comes first, so that the table of joint values of a smaller
    row is the beginning of the table of k sites.

    Args:
        block: Mask (rows, N) bool, True for the selected sites of each row.

    Returns:
        Site indices (rows, k) int64, where k is the largest number of selected sites, and a bool tensor (rows, k) that
        is True for padding.
    """
    size = int(block.sum(1).max()) if len(block) else 0
    sites = block.long().argsort(dim=1, stable=True)[:, block.shape[1] - size :]
    return sites, ~block.gather(1, sites)
