"""Oracles whose distributions are those of another one, altered: what of the other one shows through."""

from collections.abc import Callable
from copy import copy

from torch import Tensor

from trialogue.oracles import Autoregressive, Context, as_context


def pass_on(base: Autoregressive, oracle: Autoregressive) -> None:
    """Give `oracle` what `base` says of its texts, its prompts, its batches and what it cuts off."""
    oracle.tokenization, oracle.batch_size = base.tokenization, base.batch_size
    oracle.prompts_go_on, oracle.cuts = base.prompts_go_on, base.cuts
    oracle.empty_prompt = base.empty_prompt


class DerivedContext(Context):
    """A context that evaluates as the context `base` does; a subclass says how it answers."""

    def __init__(self, base: Context) -> None:
        self._evaluate_as(base)

    def _evaluate_as(self, base: Context) -> None:
        self._base = base = as_context(base)
        self.first, self.recomputes, self.passes = base.first, base.recomputes, base.passes

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions, as `base` does."""
        features = self._base.features(tokens, start, stop, rows)
        self.passes = self._base.passes
        return features

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Hidden state (n, width), as that of `base`."""
        return self._base.hidden(features, layer)

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions between storage rows, as `base` does."""
        self._base.copy(source, rows, start, stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context that answers alike, as `Context.fork` does."""
        forked = copy(self)
        forked._evaluate_as(self._base.fork(rows, stop))
        return forked


class AlteredContext(DerivedContext):
    """The context `base`, its next-token distributions (n, vocab) altered by `alter`: before truncation as well as
    after it.
    """

    def __init__(self, base: Context, alter: Callable[[Tensor], Tensor]) -> None:
        super().__init__(base)
        self._alter = alter

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token."""
        return self._alter(self._base.log_probs(features))

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        """The altered distributions, unless `cut` before top-k and top-p, and the same before truncation."""
        answers, untruncated = self._base.distributions(features, cut)
        altered = self._alter(answers)
        return altered, altered if untruncated is answers else self._alter(untruncated)

    def cut(self, log_laws: Tensor) -> Tensor:
        """What is kept of `log_laws` (n, vocab), as `base` does."""
        return self._base.cut(log_laws)
