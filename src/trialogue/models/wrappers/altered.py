"""Base classes of models that modify the next-token distributions of another model."""

from collections.abc import Callable
from copy import copy

from torch import Tensor

from trialogue.oracles import Autoregressive, Context, as_context


def copy_attributes(base: Autoregressive, oracle: Autoregressive) -> None:
    """Copy the tokenization, batch size, prompt handling and truncation flag of `base` to `oracle`."""
    oracle.tokenization, oracle.batch_size = base.tokenization, base.batch_size
    oracle.prompts_go_on, oracle.cuts = base.prompts_go_on, base.cuts
    oracle.empty_prompt = base.empty_prompt


class DerivedContext(Context):
    """Base class of decoding contexts that use another context to evaluate the model.

    Args:
        base: Context that evaluates the model.
    """

    def __init__(self, base: Context) -> None:
        self._set_base(base)

    def _set_base(self, base: Context) -> None:
        self._base = base = as_context(base)
        self.first, self.recomputes, self.passes = base.first, base.recomputes, base.passes

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Compute the features of prefixes with the base context, which caches the evaluated positions.

        Args:
            tokens: Token sequences (n, capacity) int64.
            start: First position (n,) int64 to compute. Earlier positions are already cached.
            stop: Last position (n,) int64 to compute.
            rows: Row (n,) int64 of the cache for each sequence.

        Returns:
            Features (n, features) of the prefixes of length `stop`.
        """
        features = self._base.features(tokens, start, stop, rows)
        self.passes = self._base.passes
        return features

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Return the hidden states (n, width) of the base context."""
        return self._base.hidden(features, layer)

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy cached positions between rows of the base context.

        Args:
            source: Rows (n,) int64 to copy from.
            rows: Rows (n,) int64 to copy to.
            start: First position to copy.
            stop: Last position to copy (included).
        """
        self._base.copy(source, rows, start, stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context of the same class with copies of some rows.

        Args:
            rows: Rows (n,) int64 to copy. Row i of the new context is a copy of row `rows[i]`.
            stop: Maximum number of tokens per row of the new context.
        """
        forked = copy(self)
        forked._set_base(self._base.fork(rows, stop))
        return forked


class AlteredContext(DerivedContext):
    """Decoding context that applies a function to the next-token distributions of another context.

    Args:
        base: Context that evaluates the model.
        alter: Function of log-probabilities (n, vocab), which is applied before and after truncation.
    """

    def __init__(self, base: Context, alter: Callable[[Tensor], Tensor]) -> None:
        super().__init__(base)
        self._alter = alter

    def log_probs(self, features: Tensor) -> Tensor:
        """Return the modified log-probabilities (n, vocab) of the next token."""
        return self._alter(self._base.log_probs(features))

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        """Return the modified next-token distributions (n, vocab), one to sample from and one without truncation.

        Args:
            features: Features (n, features) of prefixes.
            cut: Apply top-k and top-p to the first distribution.
        """
        log_probs, untruncated = self._base.distributions(features, cut)
        altered = self._alter(log_probs)
        return altered, altered if untruncated is log_probs else self._alter(untruncated)

    def cut(self, log_laws: Tensor) -> Tensor:
        """Apply top-k and top-p of the base context to log-probabilities (n, vocab)."""
        return self._base.cut(log_laws)
