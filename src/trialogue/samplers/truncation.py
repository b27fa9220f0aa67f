"""Truncation of an oracle: temperature, top-k, top-p and min-p, for every sampler alike."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.altered import AlteredContext, pass_on
from trialogue.oracles import Autoregressive, Context, as_oracle
from trialogue.oracles.output_checks import require_floating
from trialogue.samplers.cut import Cut
from trialogue.validation import Count, NonNegative, PositiveShare, Share, validated


class Truncated(Autoregressive):
    """An oracle whose next-token distribution is sharpened by `temperature` and cut to its `top_k`, `top_p`, `min_p`
    tokens.

    Temperature comes first, then top-k, then top-p: the smallest set of most probable tokens whose probability
    reaches `top_p`, the token that reaches it included; then min-p: the tokens that are at least `min_p` times as
    probable as the most probable one. `temperature=0` is greedy. Among equally probable tokens the lowest index comes
    first. Samplers that mask ask for the tempered distribution and cut what the mask leaves of it (`Decoding.cut`); at
    temperature 0 the tempered distribution is the oracle's own.

    `base` is the oracle itself: a truncated oracle that is truncated again is one that is truncated once. Raises
    `InputError` where no one truncation does what both do, such as two nuclei one after the other.
    """

    base: Autoregressive
    temperature: float
    top_p: float
    top_k: int | None
    min_p: float

    @validated
    def __init__(
        self,
        base: Autoregressive,
        temperature: NonNegative = 1.0,
        top_p: PositiveShare = 1.0,
        top_k: Count | None = None,
        min_p: Share = 0.0,
    ) -> None:
        base = as_oracle(base)
        if isinstance(base, Truncated):
            _require_one(base, temperature, top_p, top_k)
            greedy = 0 in (base.temperature, temperature)
            temperature = 0.0 if greedy else base.temperature * temperature
            top_k = min((k for k in (base.top_k, top_k) if k is not None), default=None)
            top_p, min_p = min(base.top_p, top_p), max(base.min_p, min_p)
            base = base.base
        elif base.cuts:
            hint = "it lies upon a truncated oracle: truncate once, last of all"
            raise InputError("oracle", type(base).__name__, hint)
        self.base = base
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        pass_on(base, self)
        self.temperature, self.top_p, self.min_p = temperature, top_p, min_p
        self.top_k = 1 if temperature == 0 else top_k
        self._cut = Cut(self.top_k, top_p, min_p)
        self.cuts = not self._cut.nothing

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """As for `base`."""
        return self.base.sufficient(tokens, lengths)

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
        """What top-k, top-p and min-p keep of `log_laws` (n, vocab), renormalised; the distributions need not be
        normalised.
        """
        return self._cut(log_laws)


class _TruncatedContext(AlteredContext):
    """The context `base`, its distributions truncated as those of `oracle` are."""

    def __init__(self, base: Context, oracle: Truncated) -> None:
        super().__init__(base, oracle.truncate)
        self._oracle = oracle

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        answers, own = self._base.distributions(features)
        require_floating("oracle", answers)
        return self._alter(answers) if cut else self._oracle.temper(answers), own

    def cut(self, log_laws: Tensor) -> Tensor:
        return self._oracle.cut(log_laws)


def _require_one(inner: Truncated, temperature: float, top_p: float, top_k: int | None) -> None:
    """Raise `InputError` unless truncating `inner` once more is a truncation of its base."""
    if 0 in (inner.temperature, temperature):
        return
    if inner.top_p == 1 and inner.min_p == 0:
        return
    # A share of the mass, or of the greatest probability, is another one once the distribution is sharpened or cut
    # again.
    for name, given, default in (
        ("temperature", temperature, 1),
        ("top_k", top_k, None),
        ("top_p", top_p, 1),
    ):
        if given != default:
            hint = "the oracle is cut by top_p or min_p already: truncate once, with all settings together"
            raise InputError(name, given, hint)


def truncated(
    oracle: Autoregressive,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    min_p: float = 0.0,
) -> Truncated:
    """Return `oracle` with its next-token distribution truncated (see `Truncated`)."""
    return Truncated(oracle, temperature, top_p, top_k, min_p)
