"""Oracles whose laws are those of another one, altered: what of the other one shows through."""

from collections.abc import Callable

from torch import Tensor

from trialogue.oracles import Autoregressive, Context, as_context


def pass_on(base: Autoregressive, oracle: Autoregressive) -> None:
    """Give `oracle` what `base` says of its texts, its prompts and its batches."""
    oracle.tokenization, oracle.batch_size = base.tokenization, base.batch_size
    oracle.prompts_go_on = base.prompts_go_on


class AlteredContext(Context):
    """The context `base`, its next-token laws (n, vocab) altered by `alter`.

    What the laws were before truncation is the model's own, however many alterations with `truncates=True` lie upon it,
    altered by all the others.
    """

    def __init__(self, base: Context, alter: Callable[[Tensor], Tensor], *, truncates: bool = False) -> None:
        self._base, self._alter, self._truncates = as_context(base), alter, truncates
        base = self._base
        self.first, self.recomputes, self.passes = base.first, base.recomputes, base.passes

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions, as `base` does."""
        features = self._base.features(tokens, start, stop, rows)
        self.passes = self._base.passes
        return features

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, vocab) of the next token."""
        return self._alter(self._base.log_probs(features))

    def laws(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The altered laws, and the same before truncation."""
        answers, untruncated = self._base.laws(features)
        altered = self._alter(answers)
        if self._truncates:
            return altered, untruncated
        return altered, altered if untruncated is answers else self._alter(untruncated)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Hidden state (n, width), as that of `base`."""
        return self._base.hidden(features, layer)

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions between storage rows, as `base` does."""
        self._base.copy(source, rows, start, stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context, as `Context.fork` does."""
        return AlteredContext(self._base.fork(rows, stop), self._alter, truncates=self._truncates)
