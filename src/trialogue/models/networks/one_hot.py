"""Base class of networks that read a fixed number of one-hot tokens, with zero vectors at masked sites."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskedNetwork, MaskReader
from trialogue.randomness import generator

ENTRIES_AT_ONCE = 2**20
"""Entries per batch of states, so that a batch fits into the CPU cache."""


class OneHotNetwork(nn.Module, MaskedNetwork, MaskReader):
    """Base class of masked language models for sequences of fixed length, which read one-hot tokens.

    Methods of `Masked` compute in `dtype`, which is float64 by default for accuracy. Set it to float32 for speed.
    `forward` and `masked_logits` compute in the dtype of the weights, with gradients. Subclasses implement `logits`.

    Args:
        vocab_size: Number of tokens.
        sites: Number of tokens per sequence.

    Attributes:
        mask: Id of the mask token, equal to `vocab_size`.
    """

    sites: int
    mask: int

    def __init__(self, vocab_size: int, sites: int) -> None:
        super().__init__()
        self.vocab_size, self.sites, self.mask = vocab_size, sites, vocab_size
        self.batch_size, self.dtype = max(1, ENTRIES_AT_ONCE // (sites * vocab_size)), torch.float64

    @abstractmethod
    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Compute logits at one site per row.

        Args:
            inputs: Input ids with mask tokens at masked sites, (n, N) int64.
            sites: Site of each row, (n,) int64.
            dtype: Dtype of the computation. The dtype of the weights by default.

        Returns:
            Logits, (n, vocab_size).
        """

    def forward(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Mask one site per row and compute its logits.

        Args:
            tokens: Token ids, (n, N) int64.
            sites: Site of each row, (n,) int64.

        Returns:
            Logits, (n, vocab_size).
        """
        return self.logits(tokens.scatter(1, sites[:, None], self.mask), sites)

    @property
    def data_tokens(self) -> int:
        """Number of data tokens, without the mask token."""
        return self.vocab_size

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute logits (q, vocab_size) at some sites, with gradients. See `MaskReader.masked_logits`."""
        self._require_sites(inputs)
        return self.logits(inputs[rows], sites)

    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute the logits (q, vocab_size) at given positions (sites), with numbers of type `dtype`."""
        self._require(inputs)
        device = next(self.parameters()).device
        return self.logits(inputs[rows].to(device), sites.to(device), self.dtype)

    def _require(self, tokens: Tensor) -> Tensor:
        self._require_sites(tokens)
        wrong = tokens[(tokens < 0) | (tokens > self.mask)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), f"use token ids from 0 to {self.vocab_size - 1}")
        return tokens

    def _require_sites(self, tokens: Tensor) -> None:
        if tokens.ndim != 2 or tokens.shape[1] != self.sites:
            hint = f"the network reads sequences of {self.sites} tokens; use the shape (rows, {self.sites})"
            raise InputError("tokens", tuple(tokens.shape), hint)


def one_hot(tokens: Tensor, vocab_size: int, dtype: torch.dtype) -> Tensor:
    """Return one-hot vectors (..., vocab_size) of `tokens` (...), with zeros for the mask token."""
    states = torch.zeros(*tokens.shape, vocab_size + 1, dtype=dtype, device=tokens.device)
    return states.scatter_(-1, tokens[..., None], 1.0)[..., :-1]


def sample_weights(shape: tuple[int, ...], seed: int, *names: object) -> Tensor:
    """Sample standard normal weights in float32.

    Args:
        shape: Shape of the weights.
        seed: Seed of the weights.
        *names: Names of the random stream, which should differ between parameters.
    """
    return torch.empty(shape).normal_(generator=generator(seed, *names))
