"""Oracles whose laws are those of another one, altered: what of the other one shows through."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from trialogue.oracles import Context


def pass_on(base: Any, oracle: Any) -> None:
    """Give `oracle` what generation asks some oracles for besides the protocol, as far as `base` has it."""
    for name in ("tokenization", "batch_size", "prompts_go_on"):
        if hasattr(base, name):
            setattr(oracle, name, getattr(base, name))


class AlteredContext:
    """The context `base`, its next-token laws (n, vocab) altered by `alter`.

    `untruncated` (n, vocab) is what the last answer was before truncation: the model's own law, however many
    alterations with `truncates=True` lie upon it, altered by all the others.
    """

    untruncated: Tensor

    def __init__(self, base: Any, alter: Callable[[Tensor], Tensor], *, truncates: bool = False) -> None:
        self._base, self._alter, self._truncates = base, alter, truncates
        self.features, self.hidden, self.copy = base.features, base.hidden, base.copy
        self.first, self.recomputes = getattr(base, "first", 0), getattr(base, "recomputes", False)

    @property
    def passes(self) -> int:
        """How often `base` has run its network; missing where it does not say."""
        passes: int = self._base.passes
        return passes

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token."""
        answers = self._base.log_probs(features)
        own = getattr(self._base, "untruncated", answers)
        altered = self._alter(answers)
        if self._truncates:
            self.untruncated = own
        else:
            self.untruncated = altered if own is answers else self._alter(own)
        return altered

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context, as `Context.fork` does."""
        return AlteredContext(self._base.fork(rows, stop), self._alter, truncates=self._truncates)
