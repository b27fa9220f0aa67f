"""Verifiers of a run's prompts, each asked about the rows that are under its rule."""

from collections.abc import Callable, Mapping

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
        return self._each(rows, (), lambda judge, places: judge.values(rows[places]))

    def candidates(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Values (n,) float64 of one continuation each: the sequence in `rows[i]` and then `tokens[i]`."""
        return self._each(rows, (), lambda judge, places: judge.candidates(rows[places], tokens[places]))

    def children(self, rows: Tensor, support: Tensor) -> Tensor:
        """Values (n, vocab) of all one-token continuations; zero outside `support` (n, vocab) bool."""
        shape = support.shape[1:]
        return self._each(rows, shape, lambda judge, places: judge.children(rows[places], support[places]))

    def leading_children(
        self,
        rows: Tensor,
        log_laws: Tensor,
        *,
        verdicts: bool = False,
        cut: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Values (n, vocab) float64 of the one-token continuations that `cut` may keep; of others zero."""

        def leading(judge: Judge, places: Tensor) -> Tensor:
            return judge.leading_children(rows[places], log_laws[places], verdicts=verdicts, cut=cut)

        return self._each(rows, log_laws.shape[1:], leading)

    def _each(self, rows: Tensor, shape: tuple[int, ...], call: Callable[[Judge, Tensor], Tensor]) -> Tensor:
        """Join the results (k, *shape) of each judge for the places (k,) of its rows; bool if all results are."""
        rules = self._batch.rule[rows]
        places = {rule: (rules == rule).nonzero()[:, 0] for rule in rules.unique().tolist()}
        results = {rule: call(self._judges[rule], own) for rule, own in places.items()}
        verdicts = bool(shape) and all(values.dtype == torch.bool for values in results.values())
        joined = torch.zeros(len(rows), *shape, dtype=torch.bool if verdicts else torch.float64)
        for rule, values in results.items():
            joined[places[rule]] = values.to(joined.dtype)
        return joined
