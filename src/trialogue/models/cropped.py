"""Oracles with a finite window: the last tokens are all of the prefix, and sequences have no end."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.oracles import Autoregressive, Context, PrefixOracle


def _pass_on(base: Any, wrapper: Any) -> None:
    """Give a wrapper what generation asks some oracles for besides the protocol."""
    for name in ("tokenization", "batch_size"):
        if hasattr(base, name):
            setattr(wrapper, name, getattr(base, name))


class Cropped(PrefixOracle):
    """The oracle `base` asked about the last `window` tokens of a prefix as if they were all of it.

    Its next token depends on those tokens and on nothing else, the position included, so that sequences have no longest
    length: it is an autoregressive model in the sense of the document on Potts chains (equation 6), and a Markov chain
    of order `window`. Where `base` puts a beginning of sequence before its input, it stands before those tokens. Equal
    contexts of a batch are evaluated once.

    Raises `InputError` for a window that is no whole number of at least 1, or longer than `base` can read.
    """

    def __init__(self, base: Autoregressive, window: int) -> None:
        self.base, self.window = base, whole_number("window", window, 1)
        if base.max_length is not None and window > base.max_length:
            raise InputError("window", window, f"the oracle reads at most {base.max_length} tokens")
        self.vocab_size, self.eos = base.vocab_size, base.eos
        _pass_on(base, self)

    def next_log_probs(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the token after the first `lengths` (n,) of `tokens` (n, capacity)."""
        kept = lengths.clamp_max(self.window)
        offsets = torch.arange(self.window)
        places = ((lengths - kept)[:, None] + offsets).clamp_max(tokens.shape[1] - 1)
        found = tokens.gather(1, places) if tokens.shape[1] else torch.zeros_like(places)
        cut = torch.cat((found.masked_fill(offsets >= kept[:, None], 0), kept[:, None]), 1)
        cut, which = cut.unique(dim=0, return_inverse=True)
        stop = cut[:, -1]
        context = self.base.open(len(cut), self.window)
        features = context.features(cut[:, :-1], torch.zeros_like(stop), stop, torch.arange(len(cut)))
        return context.log_probs(features)[which]


class Endless:
    """The oracle `base` without its last token, the end of sequence: the law of sequences that go on.

    Raises `InputError` where the end of sequence is not the last token.
    """

    eos = None

    def __init__(self, base: Autoregressive) -> None:
        if base.eos is None or base.eos != base.vocab_size - 1:
            mend = f"it must be the last of {base.vocab_size} tokens to be left out"
            raise InputError("eos", base.eos, mend)
        self.base, self.vocab_size, self.max_length = base, base.vocab_size - 1, base.max_length
        _pass_on(base, self)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return the oracle's own context, its answers normalised over the other tokens."""
        return _EndlessContext(self.vocab_size, self.base.open(rows, capacity, layers))


class _EndlessContext:
    def __init__(self, vocab_size: int, context: Any) -> None:
        self._vocab_size, self._context = vocab_size, context
        self.features, self.hidden, self.copy = context.features, context.hidden, context.copy
        self.first, self.recomputes = getattr(context, "first", 0), getattr(context, "recomputes", False)

    def log_probs(self, features: Tensor) -> Tensor:
        return self._context.log_probs(features)[:, : self._vocab_size].log_softmax(-1)

    def fork(self, rows: Tensor, stop: int) -> Context:
        return _EndlessContext(self._vocab_size, self._context.fork(rows, stop))
