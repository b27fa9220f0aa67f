"""The exact transition matrix of a chain, and whether it forgets where it started."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor

from trialogue.arrays import checked_device, real_tensor
from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import Chain, Energy, SequenceModel, as_chain, as_model, whole_sequences
from trialogue.oracles.whole import require_valid_output
from trialogue.validation import Count, check


def chain_transitions(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    max_states: int = 4096,
    device: torch.device | str | None = None,
) -> Tensor:
    """The matrix P(x, y) (V^N, V^N) float64 of one step of `chain` on `model`, from every branch of its own `step`.

    States are in the order of `itertools.product`. `sites` is N, where the model has no `sites` of its own. A chain
    whose state is more than a function of its tokens has no such matrix. The steps run on `device`, by default where
    the model lies, the matrix is on the CPU. Raises `InputError` for more than
    `max_states` states, and where the chain cannot run.
    """
    return _transitions(chain, model, _states(chain, model, sites, max_states, device))


def _transitions(chain: Chain[Any], model: SequenceModel, states: Tensor) -> Tensor:
    """From `states` (rows, N) to every state: (rows, V^N)."""
    vocab, (rows, sites) = int(as_model(model).vocab_size), states.shape
    state, each = chain.init(model, states), torch.arange(rows)
    places = vocab ** torch.arange(sites - 1, -1, -1)
    matrix = torch.zeros(rows, vocab**sites, dtype=torch.float64)
    enumeration = Enumeration(rows, 1)
    with torch.no_grad():
        require_valid_output(as_model(model), states)
        for weights, tokens in enumeration.branches(
            lambda: chain.step(model, state, enumeration.choose)[0].tokens
        ):
            matrix.index_put_((each, (tokens.cpu() * places).sum(1)), weights, accumulate=True)
    return matrix


def _states(
    chain: Chain[Any],
    model: SequenceModel,
    sites: int | None,
    max_states: int,
    device: torch.device | str | None,
) -> Tensor:
    as_chain(chain)
    asked = as_model(model)
    if sites is not None and asked.sites not in (None, sites):
        raise InputError("sites", sites, f"the model has {asked.sites} sites: leave this out")
    sites = asked.sites if sites is None else sites
    if sites is None:
        raise InputError("sites", None, f"{type(model).__name__} has any number of sites: say how many")
    vocab, most = int(asked.vocab_size), check("max_states", max_states, Count)
    if check("sites", sites, Count) * math.log(vocab) > math.log(most) + 1e-9:
        raise InputError(
            "max_states",
            max_states,
            f"the matrix would have {vocab}^{sites} states a side: use a smaller model, or estimate from "
            f"run_chain({type(chain).__name__}(...), model, ...)",
        )
    return whole_sequences(vocab, sites, checked_device(device or asked.device or "cpu"))


class Ergodicity(NamedTuple):
    """Whether a chain has one distribution in the long run: one class of states that it never leaves, of period one."""

    closed_classes: int
    period: int

    @property
    def ergodic(self) -> bool:
        """One closed class, aperiodic."""
        return self.closed_classes == 1 and self.period == 1


def ergodicity(matrix: Tensor) -> Ergodicity:
    """Closed communicating classes of a transition matrix (states, states), and the largest period of theirs."""
    matrix = real_tensor("matrix", matrix, "give a square matrix of probabilities")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not bool((matrix >= 0).all()):
        raise InputError("matrix", tuple(matrix.shape), "give a square matrix of probabilities")
    graph = csr_array((matrix > 0).numpy())
    count, label = connected_components(graph, connection="strong")
    source, target = label[np.stack(graph.nonzero())]
    closed = np.setdiff1d(np.arange(count), source[source != target])
    return Ergodicity(len(closed), max(_period(graph, np.flatnonzero(label == one)) for one in closed))


def chain_ergodicity(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    max_states: int = 4096,
    device: torch.device | str | None = None,
) -> Ergodicity:
    """How `chain` moves among the states that `model` gives a finite energy; among all, where it has no energy.

    Raises `InputError` for more than `max_states` states, and where the chain cannot run.
    """
    states = _states(chain, model, sites, max_states, device)
    possible = torch.ones(len(states), dtype=torch.bool, device=states.device)
    asked = as_model(model)
    if isinstance(asked, Energy):
        possible = asked.energy(states) < math.inf
    return ergodicity(_transitions(chain, model, states[possible])[:, possible.cpu()])


def _period(graph: csr_array, members: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """The period of a closed class: the common divisor of what every step adds to the distance from one member."""
    within = graph[members][:, members]
    order, before = breadth_first_order(within, 0)
    depth = np.zeros(len(members), dtype=np.int64)
    for one in order[1:]:
        depth[one] = depth[before[one]] + 1
    source, target = within.nonzero()
    return int(np.gcd.reduce(depth[source] + 1 - depth[target]))
