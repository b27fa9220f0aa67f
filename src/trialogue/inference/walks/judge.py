"""The verifier as walks see it: asked once per node, counted, and held to its contract."""

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.walks.batch import Batch
from trialogue.oracles import Verifier


class Judge:
    """Values of the batch's rows and of their children.

    A value is asked for once per node of the run's tree. A verifier that gives the values of all children at once is
    asked for them at every visit, which counts as one call.
    """

    def __init__(self, verifier: Verifier, batch: Batch) -> None:
        self._verifier, self._batch = verifier, batch

    def values(self, rows: Tensor) -> Tensor:
        """Values (n,) float64 of the sequences in `rows` (n,)."""
        return self._values(self._batch, rows)

    def children(self, rows: Tensor, support: Tensor) -> Tensor:
        """Values (n, vocab) float64 of all one-token continuations; zero outside `support` (n, vocab) bool."""
        batch = self._batch
        values = self._verifier.children(batch, rows)
        if values is not None:
            batch.count_verifier_calls(rows)
            return torch.where(support, _checked(values, (len(rows), batch.vocab_size)), 0.0)
        index, tokens = support.nonzero(as_tuple=True)
        result = torch.zeros(len(rows), batch.vocab_size, dtype=torch.float64)
        if len(index):
            children = batch.peek(tokens, rows[index])
            result[index, tokens] = self._values(children, torch.arange(len(index)))
        return result

    def _values(self, batch: Batch, rows: Tensor) -> Tensor:
        nodes = batch.path[rows, batch.lengths[rows]]
        verified = batch.knowledge.verified.values
        unknown = verified[nodes].isnan()
        if bool(unknown.any()):
            fresh = _first_of_each(nodes, unknown)
            values = self._verifier.values(batch, rows[fresh])
            verified[nodes[fresh]] = _checked(values, (len(fresh),))
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
    if tuple(values.shape) != shape:
        raise InputError(
            "verifier", tuple(values.shape), f"return one value per row: a tensor of shape {shape}"
        )
    values = values.detach().double()
    wrong = ~(torch.isfinite(values) & (values >= 0))
    if bool(wrong.any()):
        raise InputError("verifier", float(values[wrong][0]), "return finite non-negative values")
    return values
