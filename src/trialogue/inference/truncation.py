"""Truncation of an oracle: temperature, top-k and top-p, for every walk alike."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import non_negative_number, probability, whole_number
from trialogue.inference.nucleus import nucleus
from trialogue.models.altered import AlteredContext, pass_on
from trialogue.oracles import Autoregressive, Context, as_oracle

_FIRST = 256


class Truncated(Autoregressive):
    """An oracle whose next-token law is sharpened by `temperature` and cut to its `top_k` and `top_p` tokens.

    Temperature comes first, then top-k, then top-p: the smallest set of most probable tokens whose probability
    reaches `top_p`, the token that reaches it included. `temperature=0` is greedy. Among equally
    probable tokens the lowest index comes first. `base` is the oracle itself; where that is truncated as well, samples
    still report their log-probability under what was never truncated.
    """

    def __init__(
        self, base: Autoregressive, temperature: float = 1.0, top_p: float = 1.0, top_k: int | None = None
    ) -> None:
        temperature = non_negative_number("temperature", temperature)
        mend = "use a probability in (0, 1]; temperature=0 decodes greedily"
        top_p = probability("top_p", top_p, zero=False, mend=mend)
        if top_k is not None:
            top_k = whole_number("top_k", top_k, 1, mend="keep at least 1 token, or use None for all")
        self.base = base = as_oracle(base)
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        pass_on(base, self)
        self.temperature, self.top_p = temperature, top_p
        self.top_k = 1 if temperature == 0 else top_k
        self._reach = torch.tensor(top_p, dtype=torch.float64)  # a tensor compares twice as fast as a number

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return the oracle's own context, its answers truncated."""
        return AlteredContext(self.base.open(rows, capacity, layers), self.truncate, truncates=True)

    def truncate(self, log_probs: Tensor) -> Tensor:
        """Truncate and renormalise `log_probs` (n, vocab)."""
        if self.temperature not in (0, 1):
            # Relative to the greatest, and no colder than the type can tell, nothing overflows to NaN.
            relative = log_probs - log_probs.amax(-1, keepdim=True)
            temperature = max(self.temperature, torch.finfo(log_probs.dtype).tiny)
            log_probs = (relative / temperature).log_softmax(-1)
        if self.top_k is None and self.top_p == 1:
            return log_probs
        vocab = log_probs.shape[-1]
        if vocab > 2 * _FIRST and self.top_k is None and _readable(log_probs):
            return nucleus(log_probs, self.top_p)
        if vocab <= 2 * _FIRST:
            return self._cut(log_probs, *_ordered(log_probs))
        # Nearly always what is kept is a small part of a large vocabulary, and sorting all of it costs as much as the
        # model's own pass.
        top, order = log_probs.topk(_FIRST, sorted=False)
        order, by_index = order.sort()
        top, by_value = _ordered(top.gather(-1, by_index))
        order = order.gather(-1, by_value)
        rest = log_probs.scatter(-1, order, -math.inf).logsumexp(-1, keepdim=True)
        cut = self._kept(torch.cat((top, rest), -1))[..., :_FIRST]
        # Among tokens that tie with the last one looked at, some may be missing.
        unsure = torch.isfinite(cut[..., -1]) | (cut.isfinite() & (top == top[..., -1:])).any(-1)
        result = torch.full_like(log_probs, -math.inf).scatter_(-1, order, cut.log_softmax(-1))
        if bool(unsure.any()):
            result[unsure] = self._cut(log_probs[unsure], *_ordered(log_probs[unsure]))
        return result

    def _kept(self, ordered: Tensor) -> Tensor:
        """`ordered` (n, k), most probable first, with what is cut off at -inf."""
        if self.top_k is not None:
            ordered = ordered.clone()
            ordered[:, self.top_k :] = -math.inf
        if self.top_p != 1:
            probs = ordered.softmax(-1)
            before = probs.cumsum(-1) - probs
            ordered = ordered.masked_fill(before >= self._reach, -math.inf)
        return ordered

    def _cut(self, log_probs: Tensor, ordered: Tensor, order: Tensor) -> Tensor:
        return torch.empty_like(log_probs).scatter_(1, order, self._kept(ordered).log_softmax(-1))


def _readable(log_probs: Tensor) -> bool:
    return log_probs.device.type == "cpu" and log_probs.dtype == torch.float32


def _ordered(log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Most probable first, and where they were; a stable sort, so that the lowest index wins among ties."""
    ordered, order = log_probs.sort(dim=-1, descending=True, stable=True)
    return ordered, order


def truncated(
    oracle: Autoregressive, temperature: float = 1.0, top_p: float = 1.0, top_k: int | None = None
) -> Truncated:
    """Return `oracle` with its next-token law truncated (see `Truncated`)."""
    return Truncated(oracle, temperature, top_p, top_k)
