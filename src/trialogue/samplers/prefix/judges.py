"""Verifiers of a run's prompts, each asked about the rows that are under its rule."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from trialogue.oracles import Verifier
from trialogue.samplers.prefix.batch import View
from trialogue.samplers.prefix.judge import Judge


class JudgeOfRules(Judge):
    """As `Judge`, where `verifiers[i]` judges the rows of the batch whose `rule` is i."""

    def __init__(self, verifiers: Mapping[int, Verifier], batch: View) -> None:
        self._batch = batch
        self._judges = {rule: Judge(verifier, batch) for rule, verifier in verifiers.items()}

    def add(self, rule: int, verifier: Verifier) -> None:
        """Let `verifier` judge the rows whose rule is `rule`."""
        self._judges[rule] = Judge(verifier, self._batch)

    def remove(self, rule: int) -> None:
        """There are no more rows whose rule is `rule`."""
        del self._judges[rule]

    def values(self, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        values = torch.empty(len(rows), dtype=torch.float64)
        for judge, places in self._of(rows):
            values[places] = judge.values(rows[places])
        return values

    def candidates(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Values (n,) float64 of one continuation each: the sequence in `rows[i]` and then `tokens[i]`."""
        values = torch.empty(len(rows), dtype=torch.float64)
        for judge, places in self._of(rows):
            values[places] = judge.candidates(rows[places], tokens[places])
        return values

    def children(self, rows: Tensor, support: Tensor) -> Tensor:
        """Values (n, vocab) of all one-token continuations; zero outside `support` (n, vocab) bool."""
        answers = [
            (places, judge.children(rows[places], support[places])) for judge, places in self._of(rows)
        ]
        return _joined(answers, support)

    def leading_children(
        self,
        rows: Tensor,
        log_laws: Tensor,
        *,
        verdicts: bool = False,
        cut: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Values (n, vocab) float64 of the one-token continuations that `cut` may keep; of others zero."""
        answers = [
            (places, judge.leading_children(rows[places], log_laws[places], verdicts=verdicts, cut=cut))
            for judge, places in self._of(rows)
        ]
        return _joined(answers, log_laws)

    def _of(self, rows: Tensor) -> Iterator[tuple[Judge, Tensor]]:
        """Each judge that is asked about some of `rows` (n,), and their places (k,) among these."""
        rules = self._batch.rule[rows]
        for rule in rules.unique().tolist():
            yield self._judges[rule], (rules == rule).nonzero()[:, 0]


def _joined(answers: Sequence[tuple[Tensor, Tensor]], like: Tensor) -> Tensor:
    """Answers (k, vocab) for places (k,) as those for all (n, vocab): bool where all are."""
    verdicts = all(values.dtype == torch.bool for _, values in answers)
    joined = torch.zeros(like.shape, dtype=torch.bool if verdicts else torch.float64)
    for places, values in answers:
        joined[places] = values.to(joined.dtype)
    return joined
