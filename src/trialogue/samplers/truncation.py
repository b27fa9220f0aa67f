"""Temperature, top-k, top-p and min-p for any model and sampler."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.wrappers.altered import AlteredContext, copy_attributes
from trialogue.oracles import Autoregressive, Context, as_oracle
from trialogue.oracles.output_checks import require_floating
from trialogue.samplers.cut import Cut
from trialogue.validation import Count, NonNegative, PositiveShare, Share, validated


class Truncated(Autoregressive):
    """A model with a truncated next-token distribution.

    Temperature is applied first, then top-k, top-p and min-p. Among equally probable tokens, lower indices
    come first. Samplers with a mask can apply it between temperature and truncation.

    Args:
        base: The model.
        temperature: Divide the logits by this number. 0 means greedy decoding (default: 1).
        top_p: Keep the smallest set of most probable tokens whose total probability is at least `top_p`
            (default: 1).
        top_k: Keep this many most probable tokens (default: all).
        min_p: Keep tokens with at least `min_p` times the probability of the most probable token (default:
            0).

    Raises:
        InputError: If `base` is truncated and the two truncations cannot be combined, such as two values of
            `top_p`.

    Example:
        >>> from trialogue import data, truncated
        >>> from trialogue.oracles import next_log_probs
        >>> import torch
        >>> table = data.Table(lambda prefix: [0.5, 0.3, 0.2], 3, max_length=2)
        >>> next_log_probs(truncated(table, top_k=2), torch.zeros(1, 0, dtype=torch.int64)).exp()
        tensor([[0.6250, 0.3750, 0.0000]], dtype=torch.float64)
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
            hint = "the model wraps a truncated model; truncate the outermost model instead"
            raise InputError("oracle", type(base).__name__, hint)
        self.base = base
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        copy_attributes(base, self)
        self.temperature, self.top_p, self.min_p = temperature, top_p, min_p
        self.top_k = 1 if temperature == 0 else top_k
        self._cut = Cut(self.top_k, top_p, min_p)
        self.cuts = not self._cut.keeps_all

    def sufficient(self, tokens: Tensor, lengths: Tensor) -> Tensor | None:
        """Return the sufficient statistic of the prefixes as defined by `base`, or None.

        Args:
            tokens: Token ids (n, width).
            lengths: Lengths (n,).
        """
        return self.base.sufficient(tokens, lengths)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Open a context of `base` whose next-token distributions are truncated.

        Args:
            rows: Number of storage rows.
            capacity: Largest number of tokens of a row.
            layers: Blocks whose hidden states are stored (default: none).

        Returns:
            The context.
        """
        return _TruncatedContext(self.base.open(rows, capacity, layers), self)

    def truncate(self, log_probs: Tensor) -> Tensor:
        """Apply temperature, top-k, top-p and min-p, and normalise.

        Args:
            log_probs: Log-probabilities (n, vocab).

        Returns:
            Log-probabilities (n, vocab), -inf for removed tokens.
        """
        tempered = self.temper(log_probs)
        return self.cut(tempered) if self.cuts else tempered

    def temper(self, log_probs: Tensor) -> Tensor:
        """Apply the temperature only, and normalise. A temperature of 0 leaves log-probabilities unchanged.

        Args:
            log_probs: Log-probabilities (n, vocab).

        Returns:
            Log-probabilities (n, vocab).
        """
        return temper(log_probs, self.temperature)

    def cut(self, log_probs: Tensor) -> Tensor:
        """Apply top-k, top-p and min-p without the temperature, and normalise.

        Args:
            log_probs: Log-probabilities (n, vocab), not necessarily normalised.

        Returns:
            Log-probabilities (n, vocab), -inf for removed tokens.
        """
        return self._cut(log_probs)


def temper(log_probs: Tensor, temperature: float) -> Tensor:
    """Divide log-probabilities by a temperature, and normalise. Temperatures 0 and 1 leave them unchanged.

    Args:
        log_probs: Log-probabilities (n, vocab).
        temperature: Temperature of at least 0.

    Returns:
        Log-probabilities (n, vocab).
    """
    if temperature in (0, 1):
        return log_probs
    # Subtracting the maximum and bounding the temperature from below avoids NaN.
    relative = log_probs - log_probs.amax(-1, keepdim=True)
    return (relative / max(temperature, torch.finfo(log_probs.dtype).tiny)).log_softmax(-1)


class _TruncatedContext(AlteredContext):
    """A context whose distributions are truncated."""

    def __init__(self, base: Context, oracle: Truncated) -> None:
        super().__init__(base, oracle.truncate)
        self._oracle = oracle

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        answers, own = self._base.distributions(features)
        require_floating("oracle", answers)
        return self._alter(answers) if cut else self._oracle.temper(answers), own

    def cut(self, log_probs: Tensor) -> Tensor:
        return self._oracle.cut(log_probs)


def _require_one(inner: Truncated, temperature: float, top_p: float, top_k: int | None) -> None:
    """Raise `InputError` unless two successive truncations can be combined into one."""
    if 0 in (inner.temperature, temperature):
        return
    if inner.top_p == 1 and inner.min_p == 0:
        return
    # Temperature and truncation change the probabilities that top-p and min-p refer to.
    for name, given, default in (
        ("temperature", temperature, 1),
        ("top_k", top_k, None),
        ("top_p", top_p, 1),
    ):
        if given != default:
            hint = "the model is already truncated by top_p or min_p; truncate once with all settings"
            raise InputError(name, given, hint)


def truncated(
    oracle: Autoregressive,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    min_p: float = 0.0,
) -> Truncated:
    """Return a model with temperature and truncation of its next-token distributions.

    Args:
        oracle: The model.
        temperature: Divide the logits by this number. 0 means greedy decoding (default: 1).
        top_p: Keep the smallest set of most probable tokens whose total probability is at least `top_p` (default: 1).
        top_k: Keep this many most probable tokens (default: all).
        min_p: Keep tokens with at least `min_p` times the probability of the most probable token (default: 0).

    Returns:
        The model, which accepts the same calls as `oracle`.

    Raises:
        InputError: If `oracle` is truncated and the two truncations cannot be combined.
    """
    return Truncated(oracle, temperature, top_p, top_k, min_p)
