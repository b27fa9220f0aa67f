"""Truncation of an oracle: temperature, top-k, top-p and min-p, for every walk alike."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError, non_negative_number, probability, whole_number
from trialogue.inference.nucleus import leading, nucleus
from trialogue.models.altered import AlteredContext, pass_on
from trialogue.oracles import Autoregressive, Context, as_oracle

_FIRST, _FEW = 256, 32


class Truncated(Autoregressive):
    """An oracle whose next-token law is sharpened by `temperature` and cut to its `top_k`, `top_p`, `min_p` tokens.

    Temperature comes first, then top-k, then top-p: the smallest set of most probable tokens whose probability
    reaches `top_p`, the token that reaches it included; then min-p: the tokens that are at least `min_p` times as
    probable as the most probable one. `temperature=0` is greedy. Among equally probable tokens the lowest index comes
    first. Walks that mask ask for the tempered law and cut what the mask leaves of it (`Decoding.cut`); at temperature
    0 the tempered law is the oracle's own.

    `base` is the oracle itself: a truncated oracle that is truncated again is one that is truncated once. Raises
    `InputError` where no one truncation does what both do, such as two nuclei one after the other.
    """

    base: Autoregressive
    temperature: float
    top_p: float
    top_k: int | None
    min_p: float

    def __init__(
        self,
        base: Autoregressive,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int | None = None,
        min_p: float = 0.0,
    ) -> None:
        temperature = non_negative_number("temperature", temperature)
        mend = "use a probability in (0, 1]; temperature=0 decodes greedily"
        top_p = probability("top_p", top_p, zero=False, mend=mend)
        min_p = probability("min_p", min_p)
        if top_k is not None:
            top_k = whole_number("top_k", top_k, 1, mend="keep at least 1 token, or use None for all")
        base = as_oracle(base)
        if isinstance(base, Truncated):
            _require_one(base, temperature, top_p, top_k)
            greedy = 0 in (base.temperature, temperature)
            temperature = 0.0 if greedy else base.temperature * temperature
            top_k = min((k for k in (base.top_k, top_k) if k is not None), default=None)
            top_p, min_p = min(base.top_p, top_p), max(base.min_p, min_p)
            base = base.base
        elif base.cuts:
            mend = "it lies upon a truncated oracle: truncate once, last of all"
            raise InputError("oracle", type(base).__name__, mend)
        self.base = base
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        pass_on(base, self)
        self.temperature, self.top_p, self.min_p = temperature, top_p, min_p
        self.top_k = 1 if temperature == 0 else top_k
        self.cuts = self.top_k is not None or top_p != 1 or min_p != 0
        self._reach = torch.tensor(top_p, dtype=torch.float64)  # a tensor compares twice as fast as a number

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return the oracle's own context, its answers truncated."""
        return _TruncatedContext(self.base.open(rows, capacity, layers), self)

    def truncate(self, log_probs: Tensor) -> Tensor:
        """Truncate and renormalise `log_probs` (n, vocab)."""
        tempered = self.temper(log_probs)
        return self.cut(tempered) if self.cuts else tempered

    def temper(self, log_probs: Tensor) -> Tensor:
        """`log_probs` (n, vocab) sharpened by the temperature; as they are where that is 0."""
        if self.temperature in (0, 1):
            return log_probs
        # Relative to the greatest, and no colder than the type can tell, nothing overflows to NaN.
        relative = log_probs - log_probs.amax(-1, keepdim=True)
        temperature = max(self.temperature, torch.finfo(log_probs.dtype).tiny)
        return (relative / temperature).log_softmax(-1)

    def cut(self, log_laws: Tensor) -> Tensor:
        """What top-k, top-p and min-p keep of `log_laws` (n, vocab), renormalised; the laws need not be normalised."""
        kept = self._ranked(log_laws) if self.top_k is not None or self.top_p != 1 else log_laws
        if self.min_p:
            least = kept.amax(-1, keepdim=True) + math.log(self.min_p)
            kept = kept.masked_fill(kept < least, -math.inf)
        return kept if kept is not log_laws and not self.min_p else kept.log_softmax(-1)

    def _ranked(self, log_laws: Tensor) -> Tensor:
        """What top-k and top-p keep, renormalised."""
        vocab = log_laws.shape[-1]
        if _readable(log_laws):
            if vocab <= _FEW:
                return leading(log_laws, self.top_k, self.top_p)
            if vocab > 2 * _FIRST and self.top_k is None and log_laws.dtype == torch.float32:
                return nucleus(log_laws, self.top_p)
        if vocab <= 2 * _FIRST:
            return self._cut(log_laws, *_ordered(log_laws))
        # Nearly always what is kept is a small part of a large vocabulary, and sorting all of it costs as much as the
        # model's own pass.
        top, order = log_laws.topk(_FIRST, sorted=False)
        order, by_index = order.sort()
        top, by_value = _ordered(top.gather(-1, by_index))
        order = order.gather(-1, by_value)
        rest = log_laws.scatter(-1, order, -math.inf).logsumexp(-1, keepdim=True)
        cut = self._kept(torch.cat((top, rest), -1))[..., :_FIRST]
        # Among tokens that tie with the last one looked at, some may be missing.
        unsure = torch.isfinite(cut[..., -1]) | (cut.isfinite() & (top == top[..., -1:])).any(-1)
        result = torch.full_like(log_laws, -math.inf).scatter_(-1, order, cut.log_softmax(-1))
        if bool(unsure.any()):
            result[unsure] = self._cut(log_laws[unsure], *_ordered(log_laws[unsure]))
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

    def _cut(self, log_laws: Tensor, ordered: Tensor, order: Tensor) -> Tensor:
        return torch.empty_like(log_laws).scatter_(1, order, self._kept(ordered).log_softmax(-1))


class _TruncatedContext(AlteredContext):
    """The context `base`, its laws truncated as those of `oracle` are."""

    def __init__(self, base: Context, oracle: Truncated) -> None:
        super().__init__(base, oracle.truncate)
        self._oracle = oracle

    def laws(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        answers, own = self._base.laws(features)
        return self._alter(answers) if cut else self._oracle.temper(answers), own

    def cut(self, log_laws: Tensor) -> Tensor:
        return self._oracle.cut(log_laws)


def _require_one(inner: Truncated, temperature: float, top_p: float, top_k: int | None) -> None:
    """Raise `InputError` unless truncating `inner` once more is a truncation of its base."""
    if 0 in (inner.temperature, temperature):
        return
    if inner.top_p == 1 and inner.min_p == 0:
        return
    # A share of the mass, or of the greatest probability, is another one once the law is sharpened or cut again.
    for name, given, default in (
        ("temperature", temperature, 1),
        ("top_k", top_k, None),
        ("top_p", top_p, 1),
    ):
        if given != default:
            mend = "the oracle is cut by top_p or min_p already: truncate once, with all settings together"
            raise InputError(name, given, mend)


def _readable(log_laws: Tensor) -> bool:
    return log_laws.device.type == "cpu" and log_laws.dtype in (torch.float32, torch.float64)


def _ordered(log_laws: Tensor) -> tuple[Tensor, Tensor]:
    """Most probable first, and where they were; a stable sort, so that the lowest index wins among ties."""
    ordered, order = log_laws.sort(dim=-1, descending=True, stable=True)
    return ordered, order


def truncated(
    oracle: Autoregressive,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    min_p: float = 0.0,
) -> Truncated:
    """Return `oracle` with its next-token law truncated (see `Truncated`)."""
    return Truncated(oracle, temperature, top_p, top_k, min_p)
