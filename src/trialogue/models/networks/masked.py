"""Base classes of networks that predict masked tokens."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from trialogue.arrays import integer_tensor, require_bools
from trialogue.errors import InputError
from trialogue.oracles import Masked

_ENTRIES_AT_ONCE = 2**19
"""Number of logits that are normalised at once."""
_MOSTLY = 0.8
"""Share of free sites from which all sites are evaluated."""


class MaskReader(ABC):
    """Base class of networks that can be trained to predict masked tokens. Subclasses are also `nn.Module`.

    Attributes:
        mask: Id of the mask token, or None for a causal network.
    """

    mask: int | None

    @property
    @abstractmethod
    def data_tokens(self) -> int:
        """Number of data tokens, which have the ids 0 to data_tokens - 1."""

    @abstractmethod
    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute logits of the data tokens at some sites, with gradients and in the dtype of the weights.

        Args:
            inputs: Input ids, which may include mask tokens, (n, N) int64.
            rows: Rows of the sites, (q,) int64.
            sites: Sites to predict, (q,) int64.

        Returns:
            Logits, (q, data_tokens).

        Raises:
            InputError: If the network cannot read sequences of this shape.
        """


class MaskedNetwork(Masked):
    """Base class of masked language models that are networks. Results have no gradients.

    Attributes:
        mask: Id of the mask token.
        batch_size: Number of sequences per forward pass.
        dtype: Dtype of the results.
    """

    mask: int
    batch_size: int
    dtype: torch.dtype

    @abstractmethod
    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute the logits at given positions (sites) in one forward pass.

        Args:
            inputs: Input ids, which may include mask tokens, (n, N) int64.
            rows: Rows of the sites, (q,) int64.
            sites: Sites to predict, (q,) int64.

        Returns:
            Logits, (q, vocab_size).

        Raises:
            InputError: If the network cannot read sequences of this shape.
        """

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Compute log p(x_i | unmasked tokens) for each masked site i, with one forward pass per row.

        Args:
            tokens: Token ids, (rows, N) int64.
            masked: Sites that are masked together, (rows, N) bool.

        Returns:
            Log-probabilities, (rows, N, vocab_size). At other sites the given token has probability 1.

        Raises:
            InputError: If a token is outside the vocabulary, or if the network cannot read sequences of this shape.
        """
        log_probs = self.masked_log_probs(tokens, masked)
        given = (~masked).nonzero().unbind(1)
        log_probs[given] = self._point_masses(tokens[given])
        return log_probs

    def masked_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Compute `log_probs` of the masked sites only. Entries at other sites are undefined, which saves time."""
        tokens = integer_tensor("tokens", tokens, "give token ids (rows, N)")
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        free = masked & self.free(tokens)
        self._require_data(tokens.masked_fill(free, 0))
        inputs = tokens.masked_fill(free, self.mask)
        # Small parts stay in the cache, and need no second tensor of the size of the logits.
        size = max(1, _ENTRIES_AT_ONCE // self.vocab_size)
        if len(tokens) <= self.batch_size and int(free.sum()) >= _MOSTLY * free.numel() > 0:
            # The logits of few further sites take less time than a copy.
            log_probs = self._evaluate(inputs, *torch.ones_like(free).nonzero().unbind(1))
            for some in log_probs.split(size):
                some.copy_(some.log_softmax(-1))
        else:
            log_probs = torch.empty(tokens.numel(), self.vocab_size, dtype=self.dtype, device=tokens.device)
            for part in self._batch_slices(len(tokens)):
                rows, sites = free[part].nonzero().unbind(1)
                if len(rows):
                    logits = self._evaluate(inputs[part], rows, sites)
                    places = (rows + part.start) * tokens.shape[1] + sites
                    for at, some in zip(places.split(size), logits.split(size), strict=True):
                        log_probs.index_copy_(0, at, some.log_softmax(-1))
        fixed = (masked & ~free).flatten().nonzero()[:, 0]
        log_probs.index_copy_(0, fixed, self._point_masses(tokens.flatten()[fixed]))
        return log_probs.view(*tokens.shape, self.vocab_size)

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """Compute log p(x_i | all other tokens) of every site i, (rows, N, vocab_size)."""
        return self.site_logits(tokens).log_softmax(-1)

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Compute logits of every site given all other tokens, (rows, N, vocab_size)."""
        logits = self._point_masses(tokens)
        for rows, sites, part_logits in self._free_sites(tokens):
            logits[rows, sites] = part_logits
        return logits

    def token_logits(self, tokens: Tensor) -> Tensor:
        """Compute the entry of `site_logits` for the given token of each site, (rows, N)."""
        self._require_data(tokens)
        logits = torch.zeros(tokens.shape, dtype=self.dtype, device=tokens.device)
        for rows, sites, part_logits in self._free_sites(tokens):
            logits[rows, sites] = part_logits.gather(1, tokens[rows, sites][:, None])[:, 0]
        return logits

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """Compute log p(x_i | all other tokens) of one site per row.

        Args:
            tokens: Token ids, (rows, N) int64.
            sites: Site i of each row, (rows,) int64.

        Returns:
            Log-probabilities, (rows, vocab_size).
        """
        every = torch.arange(len(tokens), device=tokens.device)
        log_probs = self._point_masses(tokens[every, sites])
        rows = self.free(tokens)[every, sites].nonzero()[:, 0]
        for part in self._batch_slices(len(rows)):
            logits = self._mask_and_evaluate(tokens[rows[part]], sites[rows[part]])
            log_probs[rows[part]] = logits.log_softmax(-1)
        return log_probs

    def _free_sites(self, tokens: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield rows (q,), sites (q,) and logits (q, vocab_size) of all free sites in batches."""
        rows, sites = self.free(tokens).nonzero().unbind(1)
        for part in self._batch_slices(len(rows)):
            yield rows[part], sites[part], self._mask_and_evaluate(tokens[rows[part]], sites[part])

    def _mask_and_evaluate(self, tokens: Tensor, sites: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device)
        inputs = tokens.clone()
        inputs[rows, sites] = self.mask
        return self._evaluate(inputs, rows, sites)

    def _evaluate(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        with torch.no_grad():
            return self.logits_at(inputs, rows, sites).to(inputs.device, self.dtype)

    def _point_masses(self, tokens: Tensor) -> Tensor:
        """Return log-probabilities (..., vocab_size) that give each of `tokens` (...) probability one."""
        self._require_data(tokens)
        log_probs = tokens.new_full((*tokens.shape, self.vocab_size), -torch.inf, dtype=self.dtype)
        return log_probs.scatter_(-1, tokens[..., None], 0.0)

    def _require_data(self, tokens: Tensor) -> None:
        if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.vocab_size:
            wrong = int(tokens[(tokens < 0) | (tokens >= self.vocab_size)][0])
            raise InputError("tokens", wrong, f"use token ids from 0 to {self.vocab_size - 1}")

    def _batch_slices(self, count: int) -> Iterator[slice]:
        for start in range(0, count, self.batch_size):
            yield slice(start, start + self.batch_size)
