"""Top-k, top-p and min-p truncation of distributions over tokens."""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.samplers.nucleus import leading, nucleus

TopP = Annotated[float, Interval(gt=0, le=1)]
"""A probability above 0 and at most 1."""

_FIRST, _FEW = 256, 32


@dataclass(frozen=True)
class Cut:
    """Top-k, top-p and min-p truncation, applied in this order and followed by normalisation.

    Among equally probable tokens, lower indices come first.

    Args:
        top_k: Keep this many most probable tokens (default: all).
        top_p: Keep the smallest set of most probable tokens whose total probability is at least `top_p`.
        min_p: Keep tokens with at least `min_p` times the probability of the most probable token.
    """

    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    @property
    def keeps_all(self) -> bool:
        """Whether all tokens are kept."""
        return self.top_k is None and self.top_p == 1 and self.min_p == 0

    def __call__(self, log_probs: Tensor) -> Tensor:
        """Truncate and normalise distributions.

        Args:
            log_probs: Log-probabilities (n, vocab), not necessarily normalised.

        Returns:
            Normalised log-probabilities (n, vocab), -inf for removed tokens.
        """
        kept = self._ranked(log_probs) if self.top_k is not None or self.top_p != 1 else log_probs
        if self.min_p:
            least = kept.amax(-1, keepdim=True) + math.log(self.min_p)
            kept = kept.masked_fill(kept < least, -math.inf)
        return kept if kept is not log_probs and not self.min_p else kept.log_softmax(-1)

    def _ranked(self, log_probs: Tensor) -> Tensor:
        """Apply top-k and top-p, and normalise."""
        vocab = log_probs.shape[-1]
        if _readable(log_probs):
            if vocab <= _FEW:
                return leading(log_probs, self.top_k, self.top_p)
            if vocab > 2 * _FIRST and self.top_k is None and log_probs.dtype == torch.float32:
                return nucleus(log_probs, self.top_p)
        if vocab <= 2 * _FIRST:
            return self._sorted(log_probs, *_ordered(log_probs))
        # Sorting a large vocabulary costs as much as a forward pass, and only a small part is usually kept.
        top, order = log_probs.topk(_FIRST, sorted=False)
        order, by_index = order.sort()
        top, by_value = _ordered(top.gather(-1, by_index))
        order = order.gather(-1, by_value)
        rest = log_probs.scatter(-1, order, -math.inf).logsumexp(-1, keepdim=True)
        cut = self._kept(torch.cat((top, rest), -1))[..., :_FIRST]
        # Some tokens with the same probability as the last of `top` may be missing.
        unsure = torch.isfinite(cut[..., -1]) | (cut.isfinite() & (top == top[..., -1:])).any(-1)
        result = torch.full_like(log_probs, -math.inf).scatter_(-1, order, cut.log_softmax(-1))
        if bool(unsure.any()):
            result[unsure] = self._sorted(log_probs[unsure], *_ordered(log_probs[unsure]))
        return result

    def _kept(self, ordered: Tensor) -> Tensor:
        """Return log-probabilities (n, k) in descending order, with those of removed tokens set to -inf."""
        if self.top_k is not None:
            ordered = ordered.clone()
            ordered[:, self.top_k :] = -math.inf
        if self.top_p != 1:
            probs = ordered.softmax(-1)
            before = probs.cumsum(-1) - probs
            ordered = ordered.masked_fill(before >= torch.tensor(self.top_p, dtype=torch.float64), -math.inf)
        return ordered

    def _sorted(self, log_probs: Tensor, ordered: Tensor, order: Tensor) -> Tensor:
        return torch.empty_like(log_probs).scatter_(1, order, self._kept(ordered).log_softmax(-1))


def _readable(log_probs: Tensor) -> bool:
    return log_probs.device.type == "cpu" and log_probs.dtype in (torch.float32, torch.float64)


def _ordered(log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Sort by descending probability, and return the indices too. The sort is stable, so lower indices come first."""
    ordered, order = log_probs.sort(dim=-1, descending=True, stable=True)
    return ordered, order
