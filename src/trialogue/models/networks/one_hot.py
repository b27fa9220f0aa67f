"""Networks that read one-hot tokens of a fixed number of sites, a masked site as zero."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.networks.masked import MaskedNetwork, MaskReader
from trialogue.randomness import generator

ENTRIES_AT_ONCE = 2**20
"""States are evaluated in batches of so many numbers, which stay near the processor."""


class OneHotNetwork(nn.Module, MaskedNetwork, MaskReader):
    """A network of sequences of `sites` tokens of `vocab_size` values, itself a masked oracle.

    Answers are computed in `dtype`, float64 whatever the type of the weights, so that what vanishes does so to
    rounding; set it to float32 for speed. `forward` and `masked_logits` compute in the type of the weights, with
    gradients. A subclass states `logits`.
    """

    sites: int
    mask: int

    def __init__(self, vocab_size: int, sites: int) -> None:
        super().__init__()
        self.vocab_size, self.sites, self.mask = vocab_size, sites, vocab_size
        self.batch_size, self.dtype = max(1, ENTRIES_AT_ONCE // (sites * vocab_size)), torch.float64

    @abstractmethod
    def logits(self, inputs: Tensor, sites: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Logits (n, vocab) at `sites` (n,) of `inputs` (n, N), in which mask tokens stand at masked sites."""

    def forward(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Logits (n, vocab) of the tokens at `sites` (n,) of `tokens` (n, N); these sites are masked, and no others."""
        return self.logits(tokens.scatter(1, sites[:, None], self.mask), sites)

    @property
    def data_tokens(self) -> int:
        """The number of tokens of the data: all but the mask."""
        return self.vocab_size

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, vocab) at `sites` (q,) of `rows` (q,) of `inputs` (n, N), in the type of the weights."""
        self._require_sites(inputs)
        return self.logits(inputs[rows], sites)

    def answers(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, vocab) at `sites` (q,) of `rows` (q,) of `inputs` (n, N)."""
        self._require(inputs)
        device = next(self.parameters()).device
        return self.logits(inputs[rows].to(device), sites.to(device), self.dtype)

    def _require(self, tokens: Tensor) -> Tensor:
        self._require_sites(tokens)
        wrong = tokens[(tokens < 0) | (tokens > self.mask)]
        if len(wrong):
            raise InputError("tokens", int(wrong[0]), f"the model has tokens 0 to {self.vocab_size - 1}")
        return tokens

    def _require_sites(self, tokens: Tensor) -> None:
        if tokens.ndim != 2 or tokens.shape[1] != self.sites:
            hint = f"the network reads sequences of {self.sites} tokens: give (rows, {self.sites})"
            raise InputError("tokens", tuple(tokens.shape), hint)


def one_hot(tokens: Tensor, vocab_size: int, dtype: torch.dtype) -> Tensor:
    """States (..., V) of `tokens` (...): one at the token, zero everywhere for a mask."""
    states = torch.zeros(*tokens.shape, vocab_size + 1, dtype=dtype, device=tokens.device)
    return states.scatter_(-1, tokens[..., None], 1.0)[..., :-1]


def drawn_weights(shape: tuple[int, ...], seed: int, *names: object) -> Tensor:
    """Standard normal numbers float32 of a `shape` from the stream of the names: one for each parameter."""
    return torch.empty(shape).normal_(generator=generator(seed, *names))
