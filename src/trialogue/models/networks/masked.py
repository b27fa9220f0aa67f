"""Masked language models: networks that read mask tokens, as training sees them and as `trialogue.oracles.Masked`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from trialogue.arrays import require_bools, whole_tensor
from trialogue.errors import InputError
from trialogue.oracles import Masked


class MaskReader(ABC):
    """A network that learns to answer for masked tokens, a module by its other base.

    It reads the token `mask` where one is to be predicted, None where it reads no masks, and answers with one of the
    `data_tokens` first tokens: those of the data.
    """

    mask: int | None

    @property
    @abstractmethod
    def data_tokens(self) -> int:
        """The number of tokens of the data."""

    @abstractmethod
    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, data tokens) at `sites` (q,) of `rows` (q,) of `inputs` (n, N), in which mask tokens may stand.

        In the type of the weights, with gradients. Raises `InputError` for sequences that the network cannot read.
        """


class MaskedNetwork(Masked):
    """A network that answers for masked sites, as a `trialogue.oracles.Masked`.

    `mask` is the token that it reads at a masked site, `batch_size` how many sequences it evaluates at once, `dtype`
    that of its answers. They are computed at the sites asked about only, and do not carry gradients.
    """

    mask: int
    batch_size: int
    dtype: torch.dtype

    @abstractmethod
    def answers(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, vocab) of the tokens at `sites` (q,) of `rows` (q,) of `inputs` (n, N), in one pass.

        Raises `InputError` for sequences that the network cannot read.
        """

    def log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """log p(x_i | x outside the mask) (rows, N, vocab) of each site of `masked` (rows, N) bool by itself.

        One pass per row. Elsewhere tokens have probability one. Raises `InputError` for tokens the network does not
        know and sequences it cannot read.
        """
        tokens = whole_tensor("tokens", tokens, "give token ids (rows, N)")
        require_bools("masked", masked, tuple(tokens.shape), "give one bool for each token")
        masked = masked & self.free(tokens)
        distributions = self._point_masses(tokens.masked_fill(masked, 0))
        inputs = tokens.masked_fill(masked, self.mask)
        for part in self._parts(len(tokens)):
            rows, sites = masked[part].nonzero().unbind(1)
            if len(rows):
                distributions[part][rows, sites] = self._answered(inputs[part], rows, sites).log_softmax(-1)
        return distributions

    def site_log_probs(self, tokens: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, N, vocab) of every site i, each masked in a copy of its own."""
        return self.site_logits(tokens).log_softmax(-1)

    def site_logits(self, tokens: Tensor) -> Tensor:
        """Logits (rows, N, vocab) of every site i, each masked in a copy of its own."""
        logits = self._point_masses(tokens)
        for rows, sites, answered in self._free_sites(tokens):
            logits[rows, sites] = answered
        return logits

    def token_logits(self, tokens: Tensor) -> Tensor:
        """Those of `site_logits` at the tokens themselves (rows, N)."""
        self._require_data(tokens)
        logits = torch.zeros(tokens.shape, dtype=self.dtype, device=tokens.device)
        for rows, sites, answered in self._free_sites(tokens):
            logits[rows, sites] = answered.gather(1, tokens[rows, sites][:, None])[:, 0]
        return logits

    def site_log_weights(self, tokens: Tensor, sites: Tensor) -> Tensor:
        """log p(x_i | all others) (rows, vocab) of one site i = `sites` (rows,) of each row."""
        every = torch.arange(len(tokens), device=tokens.device)
        distributions = self._point_masses(tokens[every, sites])
        rows = self.free(tokens)[every, sites].nonzero()[:, 0]
        for part in self._parts(len(rows)):
            distributions[rows[part]] = self._masked_alone(tokens[rows[part]], sites[rows[part]]).log_softmax(
                -1
            )
        return distributions

    def _free_sites(self, tokens: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows (q,), sites (q,) and the logits (q, vocab) there, until each site that can change has been masked."""
        rows, sites = self.free(tokens).nonzero().unbind(1)
        for part in self._parts(len(rows)):
            yield rows[part], sites[part], self._masked_alone(tokens[rows[part]], sites[part])

    def _masked_alone(self, tokens: Tensor, sites: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device)
        inputs = tokens.clone()
        inputs[rows, sites] = self.mask
        return self._answered(inputs, rows, sites)

    def _answered(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        with torch.no_grad():
            return self.answers(inputs, rows, sites).to(inputs.device, self.dtype)

    def _point_masses(self, tokens: Tensor) -> Tensor:
        """Distributions (..., vocab) that give probability one to `tokens` (...)."""
        self._require_data(tokens)
        distributions = tokens.new_full((*tokens.shape, self.vocab_size), -torch.inf, dtype=self.dtype)
        return distributions.scatter_(-1, tokens[..., None], 0.0)

    def _require_data(self, tokens: Tensor) -> None:
        if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.vocab_size:
            wrong = int(tokens[(tokens < 0) | (tokens >= self.vocab_size)][0])
            raise InputError("tokens", wrong, f"the model has tokens 0 to {self.vocab_size - 1}")

    def _parts(self, count: int) -> Iterator[slice]:
        for start in range(0, count, self.batch_size):
            yield slice(start, start + self.batch_size)
