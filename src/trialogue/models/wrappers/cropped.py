"""Oracles with a finite window: the last tokens are all of the prefix, and sequences have no end."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.wrappers.altered import AlteredContext, pass_on
from trialogue.oracles import Autoregressive, Context, PrefixOracle, as_oracle, next_log_probs
from trialogue.validation import Count, validated


class Cropped(PrefixOracle):
    """The oracle `base` asked about the last `window` tokens of a prefix as if they were all of it.

    Its next token depends on those tokens and on nothing else, the position included, so that sequences have no longest
    length: it is an autoregressive model in the sense of the document on Potts chains (equation 6), and a Markov chain
    of order `window`. Where `base` puts a beginning of sequence before its input, it stands before those tokens. Equal
    contexts of a batch are evaluated once.

    Raises `InputError` for a window that is no whole number of at least 1, or longer than `base` can read.
    """

    @validated
    def __init__(self, base: Autoregressive, window: Count) -> None:
        self.base, self.window = base, window = as_oracle(base, "base"), window
        if base.max_length is not None and window > base.max_length:
            raise InputError("window", window, f"the oracle reads at most {base.max_length} tokens")
        self.vocab_size, self.eos = base.vocab_size, base.eos
        pass_on(base, self)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the token after the first `lengths` (n,) of `tokens` (n, capacity)."""
        kept = lengths.clamp_max(self.window)
        offsets = torch.arange(self.window)
        places = ((lengths - kept)[:, None] + offsets).clamp_max(tokens.shape[1] - 1)
        window = tokens.gather(1, places) if tokens.shape[1] else torch.zeros_like(places)
        cut = torch.cat((window.masked_fill(offsets >= kept[:, None], 0), kept[:, None]), 1)
        cut, which = cut.unique(dim=0, return_inverse=True)
        return next_log_probs(self.base, cut[:, :-1], cut[:, -1], batch_size=len(cut))[which]


class Endless(Autoregressive):
    """The oracle `base` without its last token, the end of sequence: the distribution of sequences that go on.

    Raises `InputError` where the end of sequence is not the last token.
    """

    def __init__(self, base: Autoregressive) -> None:
        base = as_oracle(base, "base")
        if base.eos is None or base.eos != base.vocab_size - 1:
            hint = f"it must be the last of {base.vocab_size} tokens to be left out"
            raise InputError("eos", base.eos, hint)
        self.base, self.vocab_size, self.max_length = base, base.vocab_size - 1, base.max_length
        pass_on(base, self)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return the oracle's own context, its answers normalised over the other tokens."""
        return AlteredContext(self.base.open(rows, capacity, layers), self._going_on)

    def _going_on(self, log_probs: Tensor) -> Tensor:
        return log_probs[:, : self.vocab_size].log_softmax(-1)
