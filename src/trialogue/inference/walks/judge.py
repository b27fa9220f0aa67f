"""The verifier as walks see it: asked once per node, counted, and held to its contract."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.verifiers.combination import factors
from trialogue.inference.verifiers.function import as_verifier
from trialogue.inference.walks.batch import View
from trialogue.oracles import Verifier

# Children that nothing is evaluated for take their tokens and nodes only.
_UNEVALUATED_AT_ONCE = 4096


class Judge:
    """Values of the batch's rows and of their children.

    A value is asked for once per node of the run's tree. A verifier that gives the values of all children at once is
    asked for them at every visit, which counts as one call; others are asked about some children at a time, as each may
    need keys of its own. Of a product a part is asked only about what the parts before it give a positive value, and of
    children first those that answer for all of them at once.
    """

    def __init__(self, verifier: Verifier, batch: View) -> None:
        self._batch, self._parts = batch, factors(as_verifier(verifier))

    def values(self, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        return self._values(self._batch, rows)

    def candidates(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Values (n,) float64 of one continuation each: the sequence in `rows[i]` and then `tokens[i]`."""
        return self._values(self._batch.peek(tokens, rows), torch.arange(len(rows)))

    def children(self, rows: Tensor, support: Tensor) -> Tensor:
        """Values (n, vocab) float64 of all one-token continuations; zero outside `support` (n, vocab) bool."""
        batch, shape = self._batch, tuple(support.shape)
        values, unanswered = support, []
        for part in self._parts:
            answers = part.children(batch, rows)
            if answers is None:
                unanswered.append(part)
            else:
                checked = _checked(answers, shape)
                both = values.dtype == checked.dtype == torch.bool
                values = values & checked if both else torch.where(values > 0, values * checked, 0.0)
        if len(unanswered) < len(self._parts):
            batch.count_verifier_calls(rows)
        index, tokens = values.nonzero(as_tuple=True) if unanswered else (rows[:0], rows[:0])
        values = values.double()
        most = batch.scratch_rows
        if not any(len(part.layers) for part in unanswered):
            most = max(most, _UNEVALUATED_AT_ONCE)
        for row, token in zip(index.split(most), tokens.split(most), strict=True):
            children, each = batch.peek(token, rows[row]), torch.arange(len(row))
            values[row, token] = self._values(children, each, unanswered, values[row, token])
        return values

    def _values(
        self,
        batch: View,
        rows: Tensor,
        parts: Sequence[Verifier] | None = None,
        others: Tensor | None = None,
    ) -> Tensor:
        """Values (n,) of `rows` (n,), asked of `parts` where they are not known; `others` (n,) of the other parts."""
        nodes = batch.nodes(rows)
        verified = batch.knowledge.verified.values
        unknown = verified[nodes].isnan()
        if bool(unknown.any()):
            fresh = _first_of_each(nodes, unknown)
            values = torch.ones(len(fresh), dtype=torch.float64) if others is None else others[fresh]
            for part in self._parts if parts is None else parts:
                open_ = values.nonzero()[:, 0]
                if len(open_):
                    answers = part.values(batch, rows[fresh[open_]])
                    values[open_] *= _checked(answers, (len(open_),)).double()
            verified[nodes[fresh]] = values
            batch.count_verifier_calls(rows[fresh])
        return verified[nodes]


def _first_of_each(nodes: Tensor, among: Tensor) -> Tensor:
    """Indices of one row per distinct node in `nodes` (n,) where `among` (n,)."""
    index = among.nonzero()[:, 0]
    distinct, inverse = torch.unique(nodes[index], return_inverse=True)
    if len(distinct) == len(index):
        return index
    first = torch.full((len(distinct),), len(nodes)).scatter_reduce(0, inverse, index, "amin")
    return first.sort().values


def _checked(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`values` as bool, or else as float64; raises `InputError` unless they are finite, non-negative and of `shape`."""
    if tuple(values.shape) != shape:
        raise InputError(
            "verifier", tuple(values.shape), f"return one value per row: a tensor of shape {shape}"
        )
    if values.dtype == torch.bool:
        return values
    values = values.detach().double()
    wrong = ~(torch.isfinite(values) & (values >= 0))
    if bool(wrong.any()):
        raise InputError("verifier", float(values[wrong][0]), "return finite non-negative values")
    return values
