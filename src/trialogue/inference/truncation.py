"""Truncation of an oracle: temperature, top-k and top-p, for every walk alike."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Context


class Truncated:
    """An oracle whose next-token law is sharpened by `temperature` and cut to its `top_k` and `top_p` tokens.

    Temperature comes first, then top-k, then top-p: the smallest set of most probable tokens whose probability
    reaches `top_p`, the token that reaches it included. `temperature=0` is greedy. Among equally
    probable tokens the lowest index comes first. `base` is the oracle itself.
    """

    def __init__(
        self, base: Autoregressive, temperature: float = 1.0, top_p: float = 1.0, top_k: int | None = None
    ) -> None:
        if not (temperature >= 0 and math.isfinite(temperature)):
            raise InputError("temperature", temperature, "use a finite number of at least 0")
        if not 0 < top_p <= 1:
            raise InputError("top_p", top_p, "use a probability in (0, 1]; temperature=0 decodes greedily")
        if top_k is not None and top_k < 1:
            raise InputError("top_k", top_k, "keep at least 1 token, or use None for all")
        self.base = base
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        self.temperature, self.top_p = temperature, top_p
        self.top_k = 1 if temperature == 0 else top_k
        self._reach = torch.tensor(top_p, dtype=torch.float64)  # a tensor compares twice as fast as a number

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return the oracle's own context, its answers truncated."""
        return _TruncatedContext(self, self.base.open(rows, capacity, layers))

    def truncate(self, log_probs: Tensor) -> Tensor:
        """Truncate and renormalise `log_probs` (n, vocab)."""
        if self.temperature not in (0, 1):
            # Relative to the greatest, and no colder than the type can tell, nothing overflows to NaN.
            relative = log_probs - log_probs.amax(-1, keepdim=True)
            temperature = max(self.temperature, torch.finfo(log_probs.dtype).tiny)
            log_probs = (relative / temperature).log_softmax(-1)
        if self.top_k is None and self.top_p == 1:
            return log_probs
        # A stable sort, so that the lowest index wins among ties.
        ordered, order = log_probs.sort(dim=-1, descending=True, stable=True)
        if self.top_k is not None:
            ordered[:, self.top_k :] = -math.inf
        if self.top_p != 1:
            probs = ordered.softmax(-1)
            before = probs.cumsum(-1) - probs
            ordered = ordered.masked_fill_(before >= self._reach, -math.inf)
        return torch.empty_like(log_probs).scatter_(1, order, ordered.log_softmax(-1))


class _TruncatedContext:
    def __init__(self, oracle: Truncated, context: Context) -> None:
        self._oracle, self._context = oracle, context
        self.features, self.hidden, self.copy = context.features, context.hidden, context.copy

    def log_probs(self, features: Tensor) -> Tensor:
        return self._oracle.truncate(self._context.log_probs(features))

    def fork(self, rows: Tensor) -> Context:
        return _TruncatedContext(self._oracle, self._context.fork(rows))


def truncated(
    oracle: Autoregressive, temperature: float = 1.0, top_p: float = 1.0, top_k: int | None = None
) -> Truncated:
    """Return `oracle` with its next-token law truncated (see `Truncated`)."""
    return Truncated(oracle, temperature, top_p, top_k)
