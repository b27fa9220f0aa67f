"""Exact transition matrix of a chain, and its ergodicity."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from torch import Tensor

from trialogue.arrays import parse_device, real_tensor
from trialogue.enumeration import enumerate_outcomes
from trialogue.errors import InputError
from trialogue.oracles import Chain, Energy, SequenceModel, as_chain, as_model, enumerate_sequences
from trialogue.oracles.whole import require_valid_output
from trialogue.randomness import Choose
from trialogue.validation import Count, check


def chain_transitions(
    chain: Chain[Any],
    model: SequenceModel,
    *,
    sites: int | None = None,
    max_states: int = 4096,
    device: torch.device | str | None = None,
) -> Tensor:
    """Compute the transition matrix of a Markov chain on all sequences of a small model.

    The matrix is exact: all random outcomes of the chain's `step` method are enumerated. The state of the
    chain must be a function of its tokens.

    Args:
        chain: The chain.
        model: The model.
        sites: Number of tokens N of a sequence, if the model does not define it.
        max_states: Largest number of states (default: 4096).
        device: Device of the steps (default: the device of the model).

    Returns:
        Probability P(x, y) of moving from x to y in one step, (V^N, V^N) float64 on the CPU, for V token
        values. States are in the order of `itertools.product`.

    Raises:
        InputError: If there are more than `max_states` states, or the chain cannot run on the model.
    """
    return _transitions(chain, model, _states(chain, model, sites, max_states, device))


def _transitions(chain: Chain[Any], model: SequenceModel, states: Tensor) -> Tensor:
    """Return the probabilities (rows, V^N) of moving from each of `states` (rows, N) to every state in one step."""
    vocab, (rows, sites) = int(as_model(model).vocab_size), states.shape
    places = vocab ** torch.arange(sites - 1, -1, -1)
    matrix = torch.zeros(rows, vocab**sites, dtype=torch.float64)

    def step(source: Tensor, choose: Choose) -> Tensor:
        return chain.step(model, chain.init(model, states[source.to(states.device)]), choose)[0].tokens.cpu()

    with torch.no_grad():
        require_valid_output(as_model(model), states)
        for source, weights, tokens in enumerate_outcomes(step, rows):
            matrix.index_put_((source, (tokens * places).sum(1)), weights, accumulate=True)
    return matrix


def _states(
    chain: Chain[Any],
    model: SequenceModel,
    sites: int | None,
    max_states: int,
    device: torch.device | str | None,
) -> Tensor:
    as_chain(chain)
    checked_model = as_model(model)
    if sites is not None and checked_model.sites not in (None, sites):
        raise InputError("sites", sites, f"leave it out, because the model has {checked_model.sites} sites")
    sites = checked_model.sites if sites is None else sites
    if sites is None:
        raise InputError("sites", None, f"give a number, because {type(model).__name__} does not define it")
    vocab, most = int(checked_model.vocab_size), check("max_states", max_states, Count)
    if check("sites", sites, Count) * math.log(vocab) > math.log(most) + 1e-9:
        raise InputError(
            "max_states",
            max_states,
            f"use a smaller model than one of {vocab}^{sites} states, or estimate from "
            f"run_chain({type(chain).__name__}(...), model, ...)",
        )
    return enumerate_sequences(vocab, sites, parse_device(device or checked_model.device or "cpu"))


class Ergodicity(NamedTuple):
    """Number and period of the closed classes of a Markov chain.

    A closed class is a set of states that the chain never leaves and within which it can move from every
    state to every other. Its period is the greatest common divisor of the possible numbers of steps from a
    state back to it.

    Attributes:
        closed_classes: Number of closed classes.
        period: Largest period of a closed class.
    """

    closed_classes: int
    period: int

    @property
    def ergodic(self) -> bool:
        """Whether the chain has a unique limit distribution: one closed class, of period 1."""
        return self.closed_classes == 1 and self.period == 1


def ergodicity(matrix: Tensor) -> Ergodicity:
    """Compute the number of closed classes and the period of a Markov chain from its transition matrix.

    Args:
        matrix: Transition probabilities (states, states).

    Returns:
        Number of closed classes, and the period.

    Raises:
        InputError: If the matrix is not square, or has a negative entry.
    """
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
    """Compute whether a Markov chain is ergodic, from its transition matrix.

    Only states of finite energy are considered, or all states if the model has no energy.

    Args:
        chain: The chain.
        model: The model.
        sites: Number of tokens of a sequence, if the model does not define it.
        max_states: Largest number of states (default: 4096).
        device: Device of the steps (default: the device of the model).

    Returns:
        Number of closed classes, and the period.

    Raises:
        InputError: If there are more than `max_states` states, or the chain cannot run on the model.
    """
    states = _states(chain, model, sites, max_states, device)
    possible = torch.ones(len(states), dtype=torch.bool, device=states.device)
    checked_model = as_model(model)
    if isinstance(checked_model, Energy):
        possible = checked_model.energy(states) < math.inf
    return ergodicity(_transitions(chain, model, states[possible])[:, possible.cpu()])


def _period(graph: csr_array, members: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """Return the period of a closed class of states.

    It is the greatest common divisor of depth(x) + 1 - depth(y) over all transitions x -> y, where the depth
    is the distance from a first state.
    """
    within = graph[members][:, members]
    order, before = breadth_first_order(within, 0)
    depth = np.zeros(len(members), dtype=np.int64)
    for one in order[1:]:
        depth[one] = depth[before[one]] + 1
    source, target = within.nonzero()
    return int(np.gcd.reduce(depth[source] + 1 - depth[target]))
