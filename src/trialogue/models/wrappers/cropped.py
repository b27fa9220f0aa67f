"""Models with a finite context window, and models whose sequences never end."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.wrappers.altered import AlteredContext, copy_attributes
from trialogue.oracles import Autoregressive, Context, PrefixOracle, as_oracle, next_log_probs
from trialogue.validation import Count, validated


class Cropped(PrefixOracle):
    """Model that predicts the next token from the last `window` tokens only.

    The next token does not depend on the position, so sequences have no maximum length. If `base` adds a BOS
    token, it precedes the last `window` tokens.

    Args:
        base: Oracle that is evaluated.
        window: Number of tokens, at least 1.

    Raises:
        InputError: If `window` is not an integer of at least 1, or exceeds the maximum length of `base`.
    """

    @validated
    def __init__(self, base: Autoregressive, window: Count) -> None:
        self.base, self.window = base, window = as_oracle(base, "base"), window
        if base.max_length is not None and window > base.max_length:
            raise InputError(
                "window", window, f"use at most {base.max_length}, the maximum length of the oracle"
            )
        self.vocab_size, self.eos = base.vocab_size, base.eos
        copy_attributes(base, self)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the log-probabilities (n, vocab) of the next token.

        Args:
            tokens: Token ids (n, capacity) int64.
            lengths: Number of tokens (n,) int64 of each prefix.
        """
        sizes = lengths.clamp_max(self.window)
        offsets = torch.arange(self.window)
        indices = ((lengths - sizes)[:, None] + offsets).clamp_max(tokens.shape[1] - 1)
        window = tokens.gather(1, indices) if tokens.shape[1] else torch.zeros_like(indices)
        cropped = torch.cat((window.masked_fill(offsets >= sizes[:, None], 0), sizes[:, None]), 1)
        cropped, inverse = cropped.unique(dim=0, return_inverse=True)
        return next_log_probs(self.base, cropped[:, :-1], cropped[:, -1], batch_size=len(cropped))[inverse]


class Endless(Autoregressive):
    """Model whose sequences never end: the end-of-sequence token has probability 0.

    Args:
        base: Oracle whose last token is the end of sequence.

    Raises:
        InputError: If the end of sequence is not the last token.
    """

    def __init__(self, base: Autoregressive) -> None:
        base = as_oracle(base, "base")
        if base.eos is None or base.eos != base.vocab_size - 1:
            hint = f"use an oracle whose end of sequence is the last of {base.vocab_size} tokens"
            raise InputError("eos", base.eos, hint)
        self.base, self.vocab_size, self.max_length = base, base.vocab_size - 1, base.max_length
        copy_attributes(base, self)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context of `base` whose distributions are renormalised without the end of sequence."""
        return AlteredContext(self.base.open(rows, capacity, layers), self._without_eos)

    def _without_eos(self, log_probs: Tensor) -> Tensor:
        return log_probs[:, : self.vocab_size].log_softmax(-1)
