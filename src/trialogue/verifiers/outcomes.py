"""A verifier that uses a value function for prefixes and an outcome for complete sequences."""

from collections.abc import Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Decoding, Verifier
from trialogue.validation import validated
from trialogue.verifiers.combination import require_no_target
from trialogue.verifiers.functions.function import VerifierLike, as_verifier


@validated
class OutcomeReward(Verifier):
    """Verifier that uses one function for prefixes (a value function) and another for complete sequences (an outcome).

    With it, value-guided samplers have the correct target although the value function is inaccurate: their
    target depends only on the outcome, if the values of prefixes are positive. In the notation of the thesis,
    V(x, y_1:H) := tau(x, y_1:H) for a complete sequence y_1:H after a prompt x.

    Args:
        values: Verifier or function of a prefix that evaluates prefixes.
        outcome: Verifier or function of a prefix that evaluates complete sequences.
        viability: Whether `outcome` also evaluates prefixes (default: False). It must then return 0 only for
            prefixes that cannot be completed to a sequence of positive outcome.

    Raises:
        InputError: If an argument is a `Target`. During sampling with `viability`, if `values` is positive
            for a prefix to which `outcome` assigns 0. The error names the prefix.
    """

    def __init__(self, values: VerifierLike, outcome: VerifierLike, *, viability: bool = False) -> None:
        self._values, self._outcome = as_verifier(values), as_verifier(outcome)
        self._viability = viability
        for field, part in (("values", self._values), ("outcome", self._outcome)):
            require_no_target(field, part, "give a verifier; a target can be a factor of Product")
        both = (self._values, self._outcome)
        self.scope = "sequence" if any(part.scope == "sequence" for part in both) else "completion"
        self.most = max(part.most for part in both)
        self.layers = tuple(dict.fromkeys(layer for part in both for layer in part.layers))
        self.notes = tuple(note for part in both for note in part.notes)
        self.parser = self._outcome.parser

    def up_to(self, stop: str | Sequence[str]) -> Self:
        """Return a copy that ignores the text from the first stop string onwards.

        Args:
            stop: Stop string, or several of them.
        """
        stopped = copy(self)
        stopped._values, stopped._outcome = self._values.up_to(stop), self._outcome.up_to(stop)
        return stopped

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return the outcomes of complete sequences and the values of prefixes.

        Args:
            decoding: Batch of sequences.
            rows: Indices (n,) int64 of the rows of the batch to evaluate.

        Returns:
            Values (n,) float64, one for each index in `rows`.

        Raises:
            InputError: If a prefix has a positive value although `outcome` rejects it (only with `viability=True`).
        """
        values = torch.empty(len(rows), dtype=torch.float64)
        complete = decoding.complete[rows]
        for part, is_evaluated in ((self._outcome, complete), (self._values, ~complete)):
            index = is_evaluated.nonzero()[:, 0]
            if len(index):
                values[index] = part.values(decoding, rows[index]).double()
        positive = (~complete & (values > 0)).nonzero()[:, 0]
        if self._viability and len(positive):
            is_dead_end = (self._outcome.values(decoding, rows[positive]) <= 0).nonzero()[:, 0]
            for position in positive[is_dead_end].tolist():
                row = int(rows[position])
                prefix = tuple(decoding.tokens[row, : int(decoding.lengths[row])].tolist())
                hint = f"every completion of {prefix} has the outcome 0; return 0 for this prefix"
                raise InputError("values", float(values[position]), hint)
        return values
