"""Value functions inside, an outcome at the end: what value-guided samplers are told where an outcome can be seen."""

from collections.abc import Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import validated
from trialogue.verifiers.function import VerifierLike, as_verifier


@validated
class OutcomeReward(Verifier):
    """The value of a prefix by `values`, of a complete sequence by `outcome`: V(x, y_1:H) := tau(x, y_1:H).

    Each is a verifier or a function of a prefix. With positive values inside, the stationary distribution of a
    value-guided sampler has on its leaves exactly the distribution of `outcome`, however wrong the values are.

    With `viability` the outcome judges prefixes as well: one that it gives 0 has no completion with an outcome above 0.
    A positive value there would send samplers where nothing is to be found: it raises `InputError` that names the
    prefix.
    """

    def __init__(self, values: VerifierLike, outcome: VerifierLike, *, viability: bool = False) -> None:
        self._values, self._outcome = as_verifier(values), as_verifier(outcome)
        self._viability = viability
        both = (self._values, self._outcome)
        self.scope = "sequence" if any(part.scope == "sequence" for part in both) else "completion"
        self.most = max(part.most for part in both)
        self.layers = tuple(dict.fromkeys(layer for part in both for layer in part.layers))
        self.notes = tuple(note for part in both for note in part.notes)
        self.parser = self._outcome.parser

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """The same of parts that judge, where they judge text, what comes before the first of the strings `stop`."""
        stopped = copy(self)
        stopped._values, stopped._outcome = self._values.up_to(stop), self._outcome.up_to(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Outcomes (n,) float64 of the complete sequences in `rows` (n,), values of the prefixes."""
        answers = torch.empty(len(rows), dtype=torch.float64)
        complete = decoding.complete[rows]
        for part, asked in ((self._outcome, complete), (self._values, ~complete)):
            places = asked.nonzero()[:, 0]
            if len(places):
                answers[places] = part.values(decoding, rows[places]).double()
        hopeful = (~complete & (answers > 0)).nonzero()[:, 0]
        if self._viability and len(hopeful):
            lost = (self._outcome.values(decoding, rows[hopeful]) <= 0).nonzero()[:, 0]
            for place in hopeful[lost].tolist():
                row = int(rows[place])
                prefix = tuple(decoding.tokens[row, : int(decoding.lengths[row])].tolist())
                hint = f"it is certain that every completion of {prefix} has the outcome 0: give 0 there"
                raise InputError("values", float(answers[place]), hint)
        return answers
